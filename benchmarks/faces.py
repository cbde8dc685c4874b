"""Faces: which detections can be recognised, how alike one person's are, and whether groups are pure.

Detections of the sample pictures, and of one frame a second of the sample videos, against what is really there.
Whatever is found where nobody is must join no group.

python -m benchmarks.faces
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path

import av
import numpy as np

from benchmarks.speech import DEFAULT
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.engines.local import LocalEngine
from rushes.engines.models.store import ModelStore
from rushes.engines.models.vision import SAME_PERSON, input_side
from rushes.engines.port import Face, Picture
from rushes.index.people.face_clustering import is_clear, persons, tracks_of
from rushes.model_settings import models_folder
from rushes.settings import load
from rushes.stages.faces import quality
from rushes.stages.vision.samples import relative_box, relative_points

LEAST = 0.5  # lower than the stage asks for: to see what the gate keeps out
MAX_SECONDS = 70
# Who is seen, from left to right: of a picture, or of a video from a second to another.
PICTURES = {
    "biden": ["biden"], "obama": ["obama"], "obama2": ["obama"], "two_people": ["obama", "biden"],
    "astronaut": ["astronaut"],
}  # fmt: skip
VIDEOS = {
    "demo_55s": [(15, 20, ["obama", "biden"]), (46, 52, ["athlete"])],
    "pose_squats": [(0, 14, ["athlete"])],
    "shots_test": [(16, 17, ["athlete"])],
    "psd_issue-134-rotate": [(0, 9, ["drawing"]), (9, 10, ["woman", "man"])],
}


@dataclass(frozen=True)
class Found:
    """A detection, and who it really is ("" for a thing that is no face, or a blur)."""

    source: str
    who: str
    face: Observation
    embedding: np.ndarray


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=Path, default=DEFAULT)
    samples = parser.parse_args().samples
    if not (samples / "faces").exists():
        print("the samples are not here: nothing was measured")
        return 0
    found = [f for source, at, picture in _pictures(samples) for f in _detected(source, at, picture)]
    return _report(found)


def _report(found: list[Found]) -> int:
    clear = [f for f in found if is_clear(f.face)]
    strangers = [f for f in clear if not f.who]
    lost = [f for f in found if f.who and not is_clear(f.face)]
    print(f"{len(found)} detections: {len(clear)} clear, {len(strangers)} of them no face; {len(lost)} faces not clear")
    pairs = [(float(a.embedding @ b.embedding), a.who == b.who) for a, b in combinations(clear, 2)]
    same, other = min(c for c, one in pairs if one), max(c for c, one in pairs if not one)
    print(f"cosine of one person {same:.2f} and more, of two {other:.2f} and less; the threshold is {SAME_PERSON}")
    worst = max((f.face.confidence for f in found if not f.who and f.face.extra["sharpness"] > 25), default=0.0)
    print(f"the surest thing that is no face: {worst:.2f}; the least sure clear face: {_least(clear):.2f}")
    groups = _groups(clear)
    mixed = [sorted(who) for who in groups if len(who) > 1]
    print(f"{len(groups)} groups of {len({f.who for f in clear})} people, mixed: {mixed}")
    return int(bool(strangers or mixed) or not other < SAME_PERSON < same)


def _least(clear: list[Found]) -> float:
    return min(f.face.confidence for f in clear)


def _groups(clear: list[Found]) -> list[set[str]]:
    """The people in each group of the whole collection."""
    by_source: dict[str, list[Found]] = {}
    for f in clear:
        by_source.setdefault(f.source, []).append(f)
    who = {(f.source, f.face.span.start_us, f.face.box): f.who for f in clear}
    tracks = [t for source, some in by_source.items() for t in tracks_of(source, [(f.face, f.embedding) for f in some])]
    return [
        {who[t.video, span.start_us, box] for t in p.tracks for span, box, _ in t.detections}
        for p in persons(tracks, [])
    ]


def _pictures(samples: Path) -> Iterator[tuple[str, int, Picture]]:
    for folder in ("faces", "images"):
        for path in sorted(p for p in (samples / folder).iterdir() if p.suffix in {".jpg", ".png"}):
            yield path.stem, 0, next(_frames(path))[1]
    for path in sorted(p for p in (samples / "video").iterdir() if p.suffix in {".mp4", ".mkv"}):
        for at, picture in _frames(path):
            yield path.stem, at, picture


def _frames(path: Path) -> Iterator[tuple[int, Picture]]:
    """A frame of each second."""
    with av.open(str(path)) as container:
        due = 0.0
        for frame in container.decode(video=0):
            at = frame.time or 0.0
            if at >= MAX_SECONDS:
                return
            if at >= due:
                due = at + 1
                yield int(at), frame.to_ndarray(format="rgb24").astype(np.uint8)


def _detected(source: str, at: int, picture: Picture) -> Iterator[Found]:
    (found,) = _engine().detect_faces("yunet-sface", [picture], LEAST, input_side("faces", "balanced"))
    faces, size = sorted(found, key=_left), (picture.shape[1], picture.shape[0])
    expected = _expected(source, at)
    real = sorted(sorted(faces, key=lambda f: -f.confidence)[: len(expected)], key=_left)
    names = {id(face): name for face, name in zip(real, expected, strict=False)}
    for face in faces:
        extra = {"points": relative_points(face.points, size), **quality(face)}
        box = relative_box(face.box, size)
        seen = Observation("face", Span(at, at + 1, Fraction(1)), "", face.confidence, box=box, extra=extra)
        yield Found(source, names.get(id(face), ""), seen, np.array(face.embedding, np.float32))


@cache
def _engine() -> LocalEngine:
    return LocalEngine(ModelStore(models_folder(load().settings)), threads=2)


def _left(face: Face) -> float:
    return face.box[0]


def _expected(source: str, at: int) -> list[str]:
    if source in PICTURES:
        return PICTURES[source]
    return next((names for start, end, names in VIDEOS.get(source, []) if start <= at < end), [])


if __name__ == "__main__":
    sys.exit(main())
