"""The people of a video as its sidecar carries them: faces over time, and what was said of them."""

import base64
from collections.abc import Mapping

from rushes.domain.keys import JSON
from rushes.index.gather import PERSON, Gatherer
from rushes.index.tracks import track_doc, track_of
from rushes.library.said import of_video
from rushes.library.said.people import marks_in
from rushes.records.port import Conflict
from rushes.telemetry import log
from rushes.wiring import House


def written(house: House, video: str) -> dict[str, JSON]:
    """Its tracks with their directions, and marks; a name that was given in another video is said of this one too."""
    tracks = [track for track in house.index.tracks(house.settings.owner) if track.video == video]
    if not tracks:
        return {}
    said = marks_in(house, video) | {record.id: dict(record.doc) for record in of_video(house, PERSON, video)}
    faces = [{**track_doc(track), "direction": base64.b64encode(track.direction).decode()} for track in tracks]
    return {"tracks": faces, "said": said}


def read_in(house: House, video: str, people: Mapping[str, JSON]) -> None:
    """The same again in a home that does not know them; what was said here counts more."""
    owner = house.settings.owner
    try:
        tracks = [track_of(video, doc, base64.b64decode(doc["direction"])) for doc in people.get("tracks", ())]
        said = {str(id): {**doc, "video": video} for id, doc in people.get("said", {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return log.warning("the people of %s cannot be read: %s", video, error)
    house.index.keep_tracks(owner, video, tracks)
    for id, doc in said.items():
        try:
            house.records.put(PERSON, owner, id, doc, expected=0)
        except Conflict:
            continue
    Gatherer(house.records, house.blobs, house.index).stale(owner)
    return None
