"""Grade: the depth grade of each shot, decided once over all chunks."""

from collections import deque
from collections.abc import Iterable, Iterator

from rushes.domain.stage import Scope, StageSpec
from rushes.media.stereo.depth_maps import DepthEntry, DepthIndex
from rushes.media.stereo.grade import AUTO, GradeOptions, grade_shots
from rushes.stages.port import Input, Work


class Grade:
    """Decides depth range, strength and convergence of each shot; refers to the depth maps."""

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
        options = GradeOptions.of(work.options)
        parts = [p for p in work.inputs("depth", "depth") if p.manifest.artifacts]
        spans: list[tuple[int, int]] = []
        depths = _depths(parts, spans)
        shots = [(int(s["start"]), int(s["end"])) for s in work.input("shots", "shots").json("shots.json")]
        found = grade_shots(shots, depths, options)
        deque(depths, 0)  # read those after the last shot
        work.save_json("grade", "grade.json", {"shots": [g.to_json() for g in found], "maps": spans})
        for n, part in enumerate(parts):
            for end in ("bin", "json"):
                work.refer("grade", part.manifest.artifact(f"depth.{end}"), f"depth_{n:05d}.{end}")
        work.count("grade", len(found))


def _depths(parts: Iterable[Input], spans: list[tuple[int, int]]) -> Iterator[DepthEntry]:
    """The maps of all chunks in order, one chunk in memory at a time; appends the first and last pts of each."""
    for part in parts:
        maps = DepthIndex.from_json(part.json("depth.json")).maps
        spans.append((maps[0].pts, maps[-1].pts))
        yield from maps


STAGE = Grade()
