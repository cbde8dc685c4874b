"""Probe: the hash, the tracks and the possible chunk starts of a file."""

from dataclasses import asdict

from rushes.domain.stage import Scope, StageSpec
from rushes.media.open import Limits
from rushes.media.reading.probe import probe
from rushes.stages.port import Work


class Probe:
    """Saves the facts of the original; its completion opens the plan."""

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
            work.log("the video is damaged or cannot be seeked: it is processed as one chunk")
        work.save_json("facts", "facts.json", facts.to_json())
        if work.promised:  # an upload that arrived after the job: from now on it is this version
            work.note("facts", source=asdict(work.promised))


STAGE = Probe()
