"""Grade: how each shot is shown in 3D, decided over all chunks."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from rushes.domain.stage import Scope, StageSpec
from rushes.media.stereo.depth import AUTO, DepthEntry, DepthIndex, GradeOptions, grade_shots
from rushes.stages.port import Input, Work


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
