"""Keeps people in the index up to date: reads the faces of a video, and clusters those of the whole library."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rushes.blobs.manifests import parse_manifest, written
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import manifest_key
from rushes.domain.observation import Observation
from rushes.index.changes import CursorMove, IndexedResult, SelectionUpdate, Track, TrackUpdate
from rushes.index.people import KIND, PERSON, FaceLabel, Person
from rushes.index.port import Index
from rushes.records.port import Record, Records, all_records
from rushes.telemetry import log

KEY = "people"  # of what is shown: it is no result, but made of all of them
_STALE = "people"
FaceLines = Sequence[tuple[IndexedResult, Sequence[Observation]]]


@dataclass(frozen=True, slots=True)
class PeopleUpdater:
    """Keeps tracks and persons in the index up to date."""

    records: Records
    blobs: Blobs
    index: Index

    def mark_stale(self, owner: str) -> None:
        """An owner's people are to be clustered again."""
        owners = self._stale()
        if owner not in owners:
            self.index.apply(CursorMove(_STALE, json.dumps(sorted({*owners, owner}))))

    def replace_faces(self, owner: str, video: str, faces: FaceLines) -> None:
        """The faces of a video have changed."""
        self.mark_stale(owner)
        self.index.apply(TrackUpdate(owner, video, self._tracks(video, faces)))

    def update(self) -> None:
        """Cluster faces where something changed, and show who is seen when."""
        for owner in self._stale():
            before = {video for video in (s.id for s in self.index.catalog(owner)) if self._is_shown(owner, video)}
            seen: dict[str, list[Observation]] = {video: [] for video in before}
            for person in self.people(owner):
                for video, line in () if person.hidden else person.lines():
                    seen.setdefault(video, []).append(line)
            for video, lines in sorted(seen.items()):
                self._show(owner, video, sorted(lines, key=_order))
            self.index.apply(CursorMove(_STALE, json.dumps(sorted({*self._stale()} - {owner}))))

    def people(self, owner: str) -> list[Person]:
        """Everybody whose face is known, as people said who they are."""
        from rushes.index.people.face_clustering import persons

        said = all_records(self.records, PERSON, owner)
        return persons(self.index.tracks(owner), [label for r in said if (label := _label(r))])

    def _stale(self) -> list[str]:
        return list(json.loads(self.index.cursor(_STALE) or "[]"))

    def _is_shown(self, owner: str, video: str) -> bool:
        return any(key == KEY for _, key, _ in self.index.state(owner, video).shown)

    def _show(self, owner: str, video: str, lines: list[Observation]) -> None:
        if list(self.index.lines(owner, video, KIND)) == lines:
            return
        result = IndexedResult(owner, video, "", KEY, None, KIND, KEY, "")
        self.index.apply(SelectionUpdate(owner, video, [(result, lines)] if lines else [], [(KIND, KEY)]))

    def _tracks(self, video: str, faces: FaceLines) -> list[Track]:
        from rushes.index.people.face_clustering import tracks_of, with_embeddings

        known = []
        for result, lines in faces:
            try:
                known += with_embeddings(lines, *self._embeddings(result))
            except (DamagedBlob, KeyError, IndexError, ValueError) as error:
                log.warning("cannot group the faces of result %s: %s", result.key, error)
        return tracks_of(video, known)

    def _embeddings(self, result: IndexedResult) -> tuple[bytes, int]:
        """The embeddings of a result's faces, row after row, and how long each is."""
        data = written(self.blobs, manifest_key(result.owner, result.key))
        manifest = parse_manifest(data or b"", result.key)
        with self.blobs.open(result.owner, manifest.artifact("embeddings.f16").sha256) as file:
            return file.read(), int(manifest.facts.get("dimensions") or 0)


def _label(record: Record) -> FaceLabel | None:
    try:
        return FaceLabel.from_doc(record.doc)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        log.warning("ignored the face record %s: %s", record.id, error)
        return None


def _order(line: Observation) -> tuple[int, int, str]:
    return line.span.start_us, line.span.end_us, line.text
