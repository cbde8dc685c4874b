"""Stereo: renders a chunk of the video for both eyes."""

from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import BinaryIO

from rushes.domain.span import Span
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.video import VideoTrack
from rushes.media.reading.frames import develop
from rushes.media.reading.scaling import display_size
from rushes.media.stereo.depth import REACH, DepthEntry, DepthIndex, DepthMap, Grade, TemporalDepth, read_map
from rushes.media.stereo.frame_packing import FramePacker, parse_format
from rushes.media.stereo.render import Renderer, StereoWriter
from rushes.stages.port import Input, Work


class Stereo:
    """Decodes the original again and renders each frame with its depth."""

    spec = StageSpec(
        "stereo",
        1,
        Scope.CHUNK,
        ("stereo",),
        needs=("probe", "grade"),
        options={"format": "half-sbs", "height": 1080, "crf": 20},
        reads_source=True,
        intermediate=("stereo",),
    )

    def run(self, work: Work) -> None:
        """Save piece.mp4; nothing where there are no pictures."""
        track = work.facts.video
        work.count("stereo", 0)
        if track is None or work.span is None:
            return
        span = Span(work.span.start, work.span.end, track.base)
        view = FramePacker(parse_format(str(work.options["format"])), display_size(track, int(work.options["height"])))
        out = work.temporary(".mp4")
        with ExitStack() as stack:
            renderer = _renderer(work, track, span, view, stack)
            piece = StereoWriter(out, track, span, renderer, view, int(work.options["crf"]))
            stack.callback(piece.close)
            develop(work.footage(), work.facts, span, [piece], work.progress)
            piece.finish()
        work.save("stereo", "piece.mp4", out, "video/mp4")
        work.note("stereo", frames=piece.frames, start=span.start, end=span.end, format=str(view.format))
        work.count("stereo", piece.frames)


@dataclass(frozen=True, slots=True)
class _Maps:
    """The maps of some chunks, as if they lay in one file."""

    files: dict[int, tuple[BinaryIO, DepthIndex]]  # by the time of each map

    def read(self, depth: DepthEntry) -> DepthMap:
        """One map."""
        file, index = self.files[depth.pts]
        return read_map(file, depth, index.size)


def _renderer(work: Work, track: VideoTrack, span: Span, view: FramePacker, stack: ExitStack) -> Renderer:
    grade = work.input("grade", "grade")
    doc = grade.json("grade.json")
    depths: list[DepthEntry] = []
    maps = _Maps({})
    for n in _near(doc["maps"], span, REACH):
        index, file = _opened(grade, n, stack)
        depths += index.maps
        maps.files.update((depth.pts, (file, index)) for depth in index.maps)
    grades = [Grade(**row) for row in doc["shots"]]
    return Renderer(track, view, TemporalDepth(depths, maps.read, track.base), grades)


def _near(spans: list[list[int]], span: Span, reach: Fraction) -> list[int]:
    """The chunks whose maps say something about this one: its own, and those on both sides."""
    ticks = int(reach / span.base)
    inside = [n for n, (first, last) in enumerate(spans) if first < span.end + ticks and last >= span.start - ticks]
    return list(range(max(0, inside[0] - 1), min(len(spans), inside[-1] + 2))) if inside else []


def _opened(grade: Input, n: int, stack: ExitStack) -> tuple[DepthIndex, BinaryIO]:
    index = DepthIndex.from_json(grade.json(f"depth_{n:05d}.json"))
    return index, stack.enter_context(grade.open(f"depth_{n:05d}.bin"))
