"""Grade: how each shot is shown in 3D, decided once over all chunks."""

from rushes.domain.stage import Card, Scope
from rushes.media.depth import DepthIndex
from rushes.media.depth_grade import AUTO, Wanted, grades
from rushes.stages.port import Work


class Grade:
    """Decides the range of depth, the strength and the convergence of each shot; hands the maps on by naming them."""

    card = Card(
        "grade",
        1,
        Scope.VIDEO,
        ("grade",),
        needs=("probe", "shots", "depth"),
        options={"strength": AUTO, "convergence": AUTO},  # per cent of the width
        passing=("grade",),
    )

    def run(self, work: Work) -> None:
        """Save grade.json, and refer to the maps of all chunks as depth_00000.bin and .json, ..."""
        wanted = Wanted.of(work.options)
        parts = [p for p in work.inputs("depth", "depth") if p.manifest.artifacts]
        indices = [DepthIndex.from_json(part.json("depth.json")) for part in parts]
        shots = [(int(s["start"]), int(s["end"])) for s in work.input("shots", "shots").json("shots.json")]
        found = grades(shots, [depth for index in indices for depth in index.maps], wanted)
        spans = [[index.maps[0].pts, index.maps[-1].pts] for index in indices]
        work.save_json("grade", "grade.json", {"shots": [g.to_json() for g in found], "maps": spans})
        for n, part in enumerate(parts):
            for end in ("bin", "json"):
                work.refer("grade", part.manifest.artifact(f"depth.{end}"), f"depth_{n:05d}.{end}")
        work.count("grade", len(found))


STAGE = Grade()
