"""Looks: the kept frames that models see, at most one a second, the same however the film is cut into chunks."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rushes.domain.span import Span
from rushes.domain.video import VideoTrack
from rushes.engines.images import decode_jpeg
from rushes.engines.port import Picture
from rushes.media.developing.pack import Kept, PackIndex, read_frame
from rushes.stages.port import Work


@dataclass(frozen=True, slots=True)
class SampledFrame:
    """A kept frame and the time for which it stands: until the next one that was kept."""

    span: Span
    picture: Picture


def looks(work: Work) -> Iterator[SampledFrame]:
    """The frames of this chunk that are worth a look, in order; none where there are no pictures."""
    pack, track = work.input("develop", "frames"), work.facts.video
    if track is None or not pack.manifest.artifacts:
        return
    chosen = choose(PackIndex.from_json(pack.json("frames.json")).frames, track)
    with pack.path("frames.pack").open("rb") as file:
        for n, (kept, end) in enumerate(chosen):
            work.progress(n / len(chosen))
            yield SampledFrame(Span(kept.pts, end, track.base), decode_jpeg(read_frame(file, kept)))


def choose(frames: Sequence[Kept], track: VideoTrack) -> list[tuple[Kept, int]]:
    """The last frame that was kept in each second, with the end of the time for which it stands.

    The last, because it is what one sees until something new is kept. Seconds are counted from the key frames at which
    sampling starts anew; every chunk begins at one.
    """
    marks = sorted({track.start, *track.keys})
    last: dict[tuple[int, int], tuple[Kept, int]] = {}
    for n, kept in enumerate(frames):
        section = max(0, bisect_right(marks, kept.pts) - 1)
        end = marks[section + 1] if section + 1 < len(marks) else track.end
        following = frames[n + 1].pts if n + 1 < len(frames) else end
        last[section, _second(kept.pts, marks[section], end, track)] = kept, max(kept.pts + 1, min(following, end))
    return list(last.values())


def _second(pts: int, start: int, end: int, track: VideoTrack) -> int:
    """Which of the seconds of a section; a section that is no whole number of seconds has slightly longer ones."""
    length = max(1, end - start)
    return (pts - start) * max(1, int(length * track.base)) // length
