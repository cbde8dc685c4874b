"""Probe: what a file holds, who it is, and where chunks may begin."""

from dataclasses import asdict

from rushes.domain.stage import Scope, StageSpec
from rushes.media.open import Limits
from rushes.media.reading.probe import probe
from rushes.stages.port import Work


class Probe:
    """Reads the original once and saves its facts; its completion opens the plan."""

    spec = StageSpec(
        "probe",
        1,
        Scope.VIDEO,
        ("facts",),
        reads_source=True,
        opens_plan=True,
        options={"max_pixels": 36_000_000, "max_hours": 24},
    )

    def run(self, work: Work) -> None:
        """Save facts.json."""
        limits = Limits(pixels=int(work.options["max_pixels"]), seconds=int(work.options["max_hours"]) * 3600)
        facts = probe(work.footage(), work.progress, limits)
        if facts.video and not facts.video.seekable:
            work.log("frames are damaged or lack timestamps: processed in one piece")
        work.save_json("facts", "facts.json", facts.to_json())
        if work.promised:  # from here on it is this version, though the job is older than the file
            work.note("facts", source=asdict(work.promised))
