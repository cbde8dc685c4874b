"""Shots: where one ends and the next begins, decided over all chunks."""

from rushes.domain.stage import Scope, StageSpec
from rushes.media.developing.cut_metrics import CutMetrics, join_metrics
from rushes.media.developing.shots import shots
from rushes.stages.port import Work


class Shots:
    """Joins the cut metrics of all chunks and decides."""

    spec = StageSpec("shots", 2, Scope.VIDEO, ("shots",), needs=("probe", "develop.metrics"))

    def run(self, work: Work) -> None:
        """Save shots.json: a list in order of time, empty where there are no pictures."""
        track = work.facts.video
        parts = [p for p in work.inputs("develop", "metrics") if p.manifest.artifacts]
        found = []
        if track is not None:
            metrics = join_metrics([CutMetrics.from_bytes(p.bytes("metrics.bin")) for p in parts])
            found = [shot.to_json() for shot in shots(metrics, track.end, track.base)]
        work.save_json("shots", "shots.json", found)
        work.count("shots", len(found))
