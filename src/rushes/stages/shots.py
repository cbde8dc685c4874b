"""Shots: where one ends and the next begins, decided over all chunks."""

from rushes.domain.observation import Observation
from rushes.domain.stage import Scope, StageSpec
from rushes.media.developing.cut_metrics import CutMetrics, join_metrics
from rushes.media.developing.shots import Shot, shots
from rushes.stages.port import Work

USUAL_THRESHOLD = 0.4  # of the option `threshold`: a higher one leaves weak cuts out


class Shots:
    """Joins the cut metrics of all chunks and decides."""

    spec = StageSpec("shots", 3, Scope.VIDEO, ("shots",), needs=("probe", "develop.metrics"), lane="gpu")

    def run(self, work: Work) -> None:
        """Save shots.json, a list in order of time, empty where there are no pictures, and the same as observations."""
        track = work.facts.video
        parts = [p for p in work.inputs("develop", "metrics") if p.manifest.artifacts]
        found: list[Shot] = []
        if track is not None:
            metrics = join_metrics([CutMetrics.from_bytes(p.bytes("metrics.bin")) for p in parts])
            least = float(work.options.get("threshold", USUAL_THRESHOLD)) / USUAL_THRESHOLD
            found = shots(metrics, track.end, track.base, least, float(work.options.get("min_scene_length", 0.0)))
        work.save_json("shots", "shots.json", [shot.to_json() for shot in found])
        rows = [Observation("shot", s.span, f"shot {n}", 1.0, extra={"begins": s.kind}) for n, s in enumerate(found, 1)]
        work.save_observations("shots", "shots.jsonl", rows, kinds=["shot"])
