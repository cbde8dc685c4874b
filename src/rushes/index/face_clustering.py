"""Gathers people: reads the faces of a video from its artifacts, and tells the whole library's faces apart."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rushes.blobs.manifests import parse_manifest, written
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import manifest_key
from rushes.domain.observation import Observation
from rushes.engines.models.faces import unpack_embeddings
from rushes.index.people import KIND, Floats, Mark, Person, persons, tracks_of
from rushes.index.port import Index, Offer
from rushes.records.port import Record, Records
from rushes.telemetry import log

FACE = "face"
PERSON = "person_name"  # records of this kind say whose a face is: doc = an anchor with name, person or hidden
KEY = "people"  # of what is shown: it is no result, but made of all of them
_STALE = "people"


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Keeps tracks and persons in the index up to date."""

    records: Records
    blobs: Blobs
    index: Index

    def stale(self, owner: str) -> None:
        """An owner's people are to be told apart again."""
        owners = self._stale()
        if owner not in owners:
            self.index.queue(_STALE, json.dumps(sorted({*owners, owner})))

    def keep(self, owner: str, video: str, faces: Sequence[tuple[Offer, Sequence[Observation]]]) -> None:
        """The faces of a video have changed."""
        self.stale(owner)
        known = [pair for offer, lines in faces for pair in self._directed(offer, lines)]
        self.index.keep_tracks(owner, video, tracks_of(video, known))

    def gather(self) -> None:
        """Tell faces apart where something changed, and show who is seen when."""
        for owner in self._stale():
            before = {video for video in (s.id for s in self.index.shelf(owner)) if self._is_shown(owner, video)}
            seen: dict[str, list[Observation]] = {video: [] for video in before}
            for person in self.people(owner):
                for video, line in () if person.hidden else person.lines():
                    seen.setdefault(video, []).append(line)
            for video, lines in sorted(seen.items()):
                self._show(owner, video, sorted(lines, key=_order))
            self.index.queue(_STALE, json.dumps(sorted({*self._stale()} - {owner})))

    def people(self, owner: str) -> list[Person]:
        """Everybody whose face is known, as people said who they are."""
        return persons(self.index.tracks(owner), [mark for r in self.marks(owner) if (mark := _mark(r))])

    def marks(self, owner: str) -> Iterator[Record]:
        """What people said about faces."""
        cursor, first = "", True
        while cursor or first:
            rows, cursor = self.records.list(PERSON, owner, cursor, 500)
            yield from rows
            first = False

    def _stale(self) -> list[str]:
        return list(json.loads(self.index.cursor(_STALE) or "[]"))

    def _is_shown(self, owner: str, video: str) -> bool:
        return any(key == KEY for _, key, _ in self.index.shown(owner, video))

    def _show(self, owner: str, video: str, lines: list[Observation]) -> None:
        if list(self.index.lines(owner, video, KIND)) == lines:
            return
        offer = Offer(owner, video, "", KEY, None, KIND, KEY, "")
        self.index.show(owner, video, [(offer, lines)] if lines else [], [(KIND, KEY)])

    def _directed(self, offer: Offer, lines: Sequence[Observation]) -> list[tuple[Observation, Floats]]:
        """Faces with the directions that tell them apart; those whose directions are not there are left out."""
        data = written(self.blobs, manifest_key(offer.owner, offer.key))
        try:
            manifest = parse_manifest(data or b"", offer.key)
            with self.blobs.open(offer.owner, manifest.artifact("embeddings.f16").sha256) as file:
                known = unpack_embeddings(file.read(), int(manifest.facts.get("dimensions") or 0))
            return [(line, np.asarray(known[int(line.extra["row"])], np.float32)) for line in lines if line.box]
        except (DamagedBlob, KeyError, IndexError, ValueError) as error:
            log.warning("the faces of result %s cannot be told apart: %s", offer.key, error)
            return []


def _mark(record: Record) -> Mark | None:
    try:
        return Mark.from_doc(record.doc)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        log.warning("what %s says of a face is left out: %s", record.id, error)
        return None


def _order(line: Observation) -> tuple[int, int, str]:
    return line.span.start_us, line.span.end_us, line.text
