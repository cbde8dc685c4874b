"""Samples: the packed frames that models see, one a second or one in so many frames, the same for every grid."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeVar

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.domain.video import VideoTrack
from rushes.engines.port import Jpeg, answered
from rushes.media.developing.frame_pack import PackedFrame, PackIndex, read_frame
from rushes.stages.port import Work

Box = tuple[float, float, float, float]
Size = tuple[int, int]  # width and height
Found = TypeVar("Found")

_DIGITS = 4
FRAMES = ("probe", "develop.frames")  # needs of the stages that see samples
CONFIDENCE_DIGITS = 3
DEFAULT_RATE = Fraction(30)  # of a track that tells none, where `frame_interval` counts its frames


def relative_box(edges: Sequence[float], size: Size) -> Box:
    """x, y, width, height of left, top, right, bottom in pixels, in a picture of that size."""
    left, top, right, bottom = edges
    width, height = size
    x, y = round(left / width, _DIGITS), round(top / height, _DIGITS)
    return x, y, round((right - left) / width, _DIGITS), round((bottom - top) / height, _DIGITS)


def relative_points(corners: Sequence[Sequence[float]], size: Size) -> list[list[float]]:
    """Points given in pixels of a picture of that size, as [x, y]."""
    width, height = size
    return [[round(x / width, _DIGITS), round(y / height, _DIGITS)] for x, y in corners]


def bounding_box(corners: Sequence[Sequence[float]]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of some points."""
    xs, ys = [c[0] for c in corners], [c[1] for c in corners]
    return min(xs), min(ys), max(xs), max(ys)


@dataclass(frozen=True, slots=True)
class SampledFrame:
    """A packed frame and its span: until the next packed frame."""

    span: Span
    picture: Jpeg
    size: Size

    def observation(
        self,
        kind: str,
        text: str,
        confidence: float,
        edges: Sequence[float] = (),
        language: str = "",
        extra: Mapping[str, JSON] | None = None,
    ) -> Observation:
        """What a model found in this frame; `edges` are left, top, right, bottom in pixels."""
        box = relative_box(edges, self.size) if edges else None
        rounded = round(confidence, CONFIDENCE_DIGITS)
        return Observation(kind, self.span, text, rounded, language, box=box, extra=extra or {})


def sampled_frames(
    work: Work, ask: Callable[[Sequence[Jpeg]], Sequence[Found]]
) -> Iterator[tuple[SampledFrame, Found]]:
    """The samples of this chunk, in order, with what a model says to each; none where there are no pictures."""
    pack, track = work.input("develop", "frames"), work.facts.video
    if track is None or not pack.manifest.artifacts:
        return
    interval = Fraction(int(work.options.get("frame_interval", 0))) / (track.rate or DEFAULT_RATE)
    index = PackIndex.from_json(pack.json("frames.json"))
    chosen, size = sample(index.frames, track, interval or Fraction(1)), (index.width, index.height)
    with pack.open("frames.pack") as file:

        def look(n: int) -> list[tuple[SampledFrame, Found]]:
            work.progress(n / len(chosen))
            some = chosen[n : n + work.engine.batch]
            frames = [SampledFrame(Span(p.pts, end, track.base), read_frame(file, p), size) for p, end in some]
            return list(zip(frames, ask([frame.picture for frame in frames]), strict=True))

        for some in answered(partial(look, n) for n in range(0, len(chosen), work.engine.batch)):
            yield from some


def sample(
    frames: Sequence[PackedFrame], track: VideoTrack, interval: Fraction = Fraction(1)
) -> list[tuple[PackedFrame, int]]:
    """The last packed frame of each interval (seconds), with the end of its span.

    The last, because it stays on screen until a new one is packed. Intervals count from the key frames at which
    sampling restarts; every chunk begins at one.
    """
    marks = sorted({track.start, *track.keys})
    last: dict[tuple[int, int], tuple[PackedFrame, int]] = {}
    for n, kept in enumerate(frames):
        section = max(0, bisect_right(marks, kept.pts) - 1)
        end = marks[section + 1] if section + 1 < len(marks) else track.end
        following = frames[n + 1].pts if n + 1 < len(frames) else end
        part = _part(kept.pts, marks[section], end, track.base / interval)
        last[section, part] = kept, max(kept.pts + 1, min(following, end))
    return list(last.values())


def _part(pts: int, start: int, end: int, base: Fraction) -> int:
    """The number of the interval in its section; a section of no whole number of them has slightly longer ones."""
    length = max(1, end - start)
    return (pts - start) * max(1, int(length * base)) // length
