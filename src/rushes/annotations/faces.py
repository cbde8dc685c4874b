"""The people of a video as its sidecar carries them: faces over time, and what was said of them."""

import base64
import math
from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rushes.annotations.people import marks_in
from rushes.domain.keys import JSON, is_id
from rushes.home import Home
from rushes.index.changes import Track, TrackUpdate
from rushes.index.people import PERSON, FaceLabel
from rushes.index.people.updater import PeopleUpdater
from rushes.records.port import Conflict


@dataclass(frozen=True, slots=True)
class Faces:
    """What a sidecar says of the people in a video, as records and the index keep it."""

    tracks: tuple[Track, ...]
    said: dict[str, dict[str, JSON]]


def faces_document(home: Home, video: str) -> dict[str, JSON]:
    """Its tracks with their embeddings, and marks; a name that was given in another video is said of this one too."""
    tracks = [track for track in home.index.tracks(home.owner) if track.video == video]
    if not tracks:
        return {}
    said = marks_in(home, video) | {record.id: dict(record.doc) for record in home.all_records(PERSON, video)}
    faces = [{**track.to_doc(), "embedding": base64.b64encode(track.embedding).decode()} for track in tracks]
    return {"tracks": faces, "said": said}


def parse_faces(video: str, people: Mapping[str, JSON]) -> Faces:
    """The inverse of written.

    Raises:
        ValueError, TypeError, LookupError, AttributeError, ArithmeticError: somebody else wrote it.
    """
    tracks = tuple(Track.from_doc(video, doc, _embedding(doc["embedding"])) for doc in people.get("tracks", ()))
    said = {str(id): {**doc, "video": video} for id, doc in people.get("said", {}).items()}
    for id, doc in said.items():
        if not is_id(id):
            raise ValueError("what is said of a face has no id")
        FaceLabel.from_doc(doc)
    return Faces(tracks, said)


def _embedding(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    if not data or len(data) % 4 or not all(map(math.isfinite, array("f", data))):
        raise ValueError("a face has no embedding")
    return data


def import_faces(home: Home, video: str, faces: Faces) -> None:
    """The same again in a home that does not know them; what was said here counts more."""
    home.index.apply(TrackUpdate(home.owner, video, faces.tracks))
    for id, doc in faces.said.items():
        with suppress(Conflict):
            home.records.put(PERSON, home.owner, id, doc, expected=0)
    PeopleUpdater(home.records, home.blobs, home.index).mark_stale(home.owner)
