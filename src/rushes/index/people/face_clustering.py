"""Faces over time become tracks; tracks of the whole library become persons, with the users' names. Pure.

The same faces and labels give the same persons, in whatever order they came.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rushes.domain.keys import short
from rushes.domain.observation import Observation
from rushes.engines.models.vision import SAME_PERSON, unpack_embeddings
from rushes.index.changes import Box, Track
from rushes.index.people import FaceLabel, Person

Floats = NDArray[np.float32]
# Measured by benchmarks/faces.py on 62 detections: the clear faces pass, no blur and nothing that is no face.
MIN_CONFIDENCE = 0.87  # things that are no faces: up to 0.84
MIN_EYES = 16.0  # pixels between the eyes; the net was trained with 35
MIN_APART = 0.28  # of the width of the face; else one eye is hidden
MIN_SHARPNESS = 25.0  # blurs: up to 5; faces: from 113
_GAP = Fraction(3, 2)  # seconds: looks are one apart, and a face may be overlooked in one


def is_clear(face: Observation) -> bool:
    """Whether a face can be recognised: sure, large and sharp enough, and seen with both eyes.

    What fails is a blur or no face: a cartoon animal, a hand, a lamp. Embeddings of such things are like anybody's.
    """
    points = face.extra.get("points") or [[0, 0], [0, 0]]
    apart = abs(points[1][0] - points[0][0]) / max(face.box[2], 1e-6) if face.box else 0.0
    eyes, sharpness = float(face.extra.get("eyes", 0)), float(face.extra.get("sharpness", 0))
    return face.confidence >= MIN_CONFIDENCE and eyes >= MIN_EYES and apart >= MIN_APART and sharpness >= MIN_SHARPNESS


def with_embeddings(faces: Iterable[Observation], data: bytes, dimensions: int) -> list[tuple[Observation, Floats]]:
    """The clear ones of these faces with their embeddings."""
    rows = unpack_embeddings(data, dimensions)
    return [(face, np.asarray(rows[int(face.extra["row"])], np.float32)) for face in faces if is_clear(face)]


def tracks_of(video: str, faces: Sequence[tuple[Observation, Floats]]) -> list[Track]:
    """Faces of a video in order of time as tracks: each goes on with the one that looks most like it."""
    open_, made = list[_Open](), list[_Open]()
    for face, embedding in sorted(faces, key=lambda f: (f[0].span.start_us, f[0].box or ())):
        at = face.span.start * face.span.base
        open_ = [t for t in open_ if at - t.end <= _GAP]
        near = max(open_, key=lambda t: (t.like(embedding) if t.last < at else -1.0, t.number), default=None)
        if near is None or near.last >= at or near.like(embedding) < SAME_PERSON:
            near = _Open(len(made))
            made.append(near)
            open_.append(near)
        near.take(face, embedding)
    return [t.track(video) for t in made]


@dataclass(slots=True)
class _Open:
    """A track that may go on."""

    number: int
    faces: list[Observation] = field(default_factory=list)
    total: Floats = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def end(self) -> Fraction:
        return self.faces[-1].span.end * self.faces[-1].span.base

    @property
    def last(self) -> Fraction:
        """When it was seen last: nobody is seen twice in one look."""
        return self.faces[-1].span.start * self.faces[-1].span.base

    def like(self, embedding: Floats) -> float:
        return float(_unit(self.total) @ embedding)

    def take(self, face: Observation, embedding: Floats) -> None:
        self.total = self.total + embedding if self.faces else embedding
        self.faces.append(face)

    def track(self, video: str) -> Track:
        best = max(self.faces, key=lambda f: (f.confidence, -f.span.start_us))
        detections = tuple((f.span, f.box or (0.0, 0.0, 1.0, 1.0), f.confidence) for f in self.faces)
        return Track(video, best.span, best.box or (0.0, 0.0, 1.0, 1.0), detections, _unit(self.total).tobytes())


def persons(tracks: Sequence[Track], labels: Iterable[FaceLabel]) -> list[Person]:
    """Everybody in the library, named first, then by how much there is of them."""
    ordered = sorted(tracks, key=lambda t: (t.video, t.span.start_us, t.box))
    embeddings = _embeddings(ordered)
    said = {n: label for label in labels if (n := _labelled(ordered, label)) is not None and label.identity}
    ids, names = _ids(said.values()), _names(said.values())
    groups: dict[str, list[int]] = defaultdict(list)
    for cluster in _clusters(embeddings):
        for label, some in _split_by_labels(cluster, embeddings, said).items():
            groups[label or _first_id(ordered, some)] += some
    hidden = {label.identity for label in said.values() if label.hidden}
    found, taken = [], {id for known in ids.values() for id in known}
    for key, some in groups.items():
        id, *aliases = ids.get(key) or [key if key not in taken else "per_" + short(key)]
        tracks = tuple(ordered[n] for n in sorted(some))
        found.append(Person(id, names.get(key, ""), key in hidden, tracks, tuple(aliases)))
    return sorted(found, key=lambda p: (not p.name, p.name, -len(p.tracks), p.id))


def _ids(labels: Iterable[FaceLabel]) -> dict[str, list[str]]:
    """The ids of each identity: those that its faces had when something was said of them, else one of its own."""
    found: dict[str, set[str]] = defaultdict(set)
    for label in labels:
        found[label.identity] |= {label.person} if label.person else set()
    return {identity: sorted(ids) or ["per_" + short(identity)] for identity, ids in found.items()}


def _names(labels: Iterable[FaceLabel]) -> dict[str, str]:
    """The name of each identity; of two ways to write it the first in order, whoever came first."""
    return {label.identity: label.name for label in sorted(labels, key=_name, reverse=True) if label.name}


def _name(label: FaceLabel) -> str:
    return label.name


def _clusters(embeddings: Floats) -> list[list[int]]:
    """Each track joins the group that it looks most like; then groups that look alike are joined, the closest first."""
    totals, members = list[Floats](), list[list[int]]()
    for n, embedding in enumerate(embeddings):
        alike = np.array([_unit(t) for t in totals]) @ embedding if totals else np.zeros(0)
        best = int(alike.argmax()) if totals else -1
        if best >= 0 and alike[best] >= SAME_PERSON:
            totals[best] = totals[best] + embedding
            members[best].append(n)
        else:
            totals.append(embedding)
            members.append([n])
    while len(totals) > 1:
        units = np.array([_unit(t) for t in totals])
        alike = np.triu(units @ units.T, 1)
        a, b = map(int, np.unravel_index(int(alike.argmax()), alike.shape))
        if alike[a, b] < SAME_PERSON:
            break
        totals[a], members[a] = totals[a] + totals.pop(b), members[a] + members.pop(b)
    return members


def _split_by_labels(cluster: Sequence[int], embeddings: Floats, said: Mapping[int, FaceLabel]) -> dict[str, list[int]]:
    """A group by what people said of faces in it: each track goes to the labelled one that it looks most like."""
    labelled = [n for n in cluster if n in said]
    if not labelled:
        return {"": list(cluster)}
    out: dict[str, list[int]] = defaultdict(list)
    for n in cluster:
        nearest = n if n in said else max(labelled, key=lambda m: (float(embeddings[m] @ embeddings[n]), -m))
        out[said[nearest].identity].append(n)
    return out


def _labelled(tracks: Sequence[Track], label: FaceLabel) -> int | None:
    """The track that a label is for: there at that time, in that part of the picture."""
    there = [(n, span, box) for n, t in enumerate(tracks) if t.video == label.video for span, box, _ in t.detections]
    scores = [(_covers(label, span.start_us, span.end_us, box), -n) for n, span, box in there]
    best, n = max(scores, default=(0.0, 0))
    return -n if best > 0 else None


def _covers(label: FaceLabel, start_us: int, end_us: int, box: Box) -> float:
    if start_us >= max(label.end_us, label.start_us + 1) or label.start_us >= max(end_us, start_us + 1):
        return 0.0
    return 1.0 if label.box is None else _overlap(label.box, box)


def _overlap(a: Box, b: Box) -> float:
    """What two boxes share, of what they cover together."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    shared = max(0.0, width) * max(0.0, height)
    return shared / max(1e-9, a[2] * a[3] + b[2] * b[3] - shared)


def _first_id(tracks: Sequence[Track], some: Sequence[int]) -> str:
    first = tracks[min(some)]
    return "per_" + short([first.video, first.span.start_us, list(first.box)])


def _embeddings(tracks: Sequence[Track]) -> Floats:
    """A row for each track; one of another model's size looks like nobody."""
    rows = [np.frombuffer(t.embedding, np.float32) for t in tracks]
    out = np.zeros((len(rows), max((len(r) for r in rows), default=0)), np.float32)
    for n, row in enumerate(rows):
        out[n] = row if len(row) == out.shape[1] else 0
    return out


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)
