"""3D: depth of each chunk, a grade for each shot, pieces for both eyes, and the joined film."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from typing import BinaryIO

from rushes.domain.errors import TryAgain
from rushes.domain.span import Span
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.video import VideoTrack
from rushes.engines.images import decode_jpeg
from rushes.engines.models.vision import gives_inverse
from rushes.media.developing.frame_pack import PackIndex, read_frame
from rushes.media.joining.join import join
from rushes.media.joining.packets import PieceFile
from rushes.media.reading.frames import develop
from rushes.media.reading.scaling import display_size
from rushes.media.stereo.depth import (
    AUTO,
    REACH,
    DepthEntry,
    DepthIndex,
    DepthMap,
    DepthWriter,
    Grade,
    GradeOptions,
    TemporalDepth,
    grade_shots,
    read_map,
)
from rushes.media.stereo.frame_packing import PACKINGS, FramePacker, StereoFormat, ass, parse_format
from rushes.media.stereo.render import Renderer, StereoWriter
from rushes.stages.port import Input, Work


class Depth:
    """Measures; what that means for a shot is decided over all chunks, elsewhere."""

    spec = StageSpec(
        "depth",
        1,
        Scope.CHUNK,
        ("depth",),
        needs=("probe", "develop.frames"),
        options={"output": "auto"},  # what the model's numbers are: depth, inverse, or known by its name
        models=("depth",),
        intermediate=("depth",),
    )

    def run(self, work: Work) -> None:
        """Save depth.bin with depth.json; nothing where there are no pictures."""
        work.count("depth", 0)
        pack = work.input("develop", "frames")
        if not pack.manifest.artifacts:
            return
        index, out = PackIndex.from_json(pack.json("frames.json")), work.temporary(".bin")
        model = work.models["depth"]
        inverse = gives_inverse(model, str(work.options["output"]))
        writer = DepthWriter(out, index.base, (index.width, index.height))
        with pack.path("frames.pack").open("rb") as file:
            for n, kept in enumerate(index.frames):
                picture = decode_jpeg(read_frame(file, kept))
                writer.add(kept.pts, work.engine.inverse_depth(model, picture, inverse=inverse))
                work.progress(n / len(index.frames))
        found = writer.finish()
        work.save("depth", "depth.bin", out, "application/octet-stream")
        work.save_json("depth", "depth.json", found.to_json())
        work.count("depth", len(found.maps))


class DepthGrade:
    """Decides the range of depth, the strength and the convergence of each shot; hands the maps on by naming them."""

    spec = StageSpec(
        "grade",
        1,
        Scope.VIDEO,
        ("grade",),
        needs=("probe", "shots", "depth"),
        options={"strength": AUTO, "convergence": AUTO},  # per cent of the width
        intermediate=("grade",),
    )

    def run(self, work: Work) -> None:
        """Save grade.json, and refer to the maps of all chunks as depth_00000.bin and .json, ..."""
        wanted = GradeOptions.of(work.options)
        parts = [p for p in work.inputs("depth", "depth") if p.manifest.artifacts]
        spans: list[tuple[int, int]] = []
        depths = _depths(parts, spans)
        shots = [(int(s["start"]), int(s["end"])) for s in work.input("shots", "shots").json("shots.json")]
        found = grade_shots(shots, depths, wanted)
        deque(depths, 0)  # those after the last shot
        work.save_json("grade", "grade.json", {"shots": [asdict(g) for g in found], "maps": spans})
        for n, part in enumerate(parts):
            for end in ("bin", "json"):
                work.refer("grade", part.manifest.artifact(f"depth.{end}"), f"depth_{n:05d}.{end}")
        work.count("grade", len(found))


def _depths(parts: Iterable[Input], spans: list[tuple[int, int]]) -> Iterator[DepthEntry]:
    """The maps of all chunks in order, one chunk in memory at a time; notes from when to when each has some."""
    for part in parts:
        maps = DepthIndex.from_json(part.json("depth.json")).maps
        spans.append((maps[0].pts, maps[-1].pts))
        yield from maps


class Stereo:
    """Decodes the original once more and renders each frame with what is known of its depth."""

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
    return index, stack.enter_context(grade.path(f"depth_{n:05d}.bin").open("rb"))


class Join:
    """Puts the pieces of all chunks in the order of the plan, with sound, chapters and subtitles of the original."""

    spec = StageSpec("join", 1, Scope.VIDEO, ("film",), needs=("probe", "stereo"), reads_source=True)

    def run(self, work: Work) -> None:
        """Save film.mp4, and film.ass if there are subtitles for two views; nothing where there are no pictures."""
        work.count("film", 0)
        pieces = [p for p in work.inputs("stereo", "stereo") if p.manifest.artifacts]
        if not pieces:
            return
        facts = [piece.manifest.facts for piece in pieces]
        both = zip(pieces, facts, strict=True)
        parts = [PieceFile(partial(p.path, "piece.mp4"), f["start"], f["end"]) for p, f in both]
        look = PACKINGS[StereoFormat(facts[0]["format"])]
        out = work.temporary(".mp4")
        made = join(work.footage(), work.facts, parts, look.layout, out, work.progress)
        if made.frames != sum(f["frames"] for f in facts):
            raise TryAgain(f"{made.frames} frames were joined, {sum(f['frames'] for f in facts)} were made")
        name = f"videos/3d/{work.video}/{facts[0]['format']}.mp4"
        work.save("film", "film.mp4", out, "video/mp4", name)
        if made.texts and look.layout:
            work.save("film", "film.ass", ass(made.texts, look).encode(), "text/x-ssa")
        sounds = [[s.numerator, s.denominator] for s in made.sounds]
        work.note("film", frames=made.frames, sounds=sounds, format=facts[0]["format"], name=look.name)
        work.count("film", made.frames)
