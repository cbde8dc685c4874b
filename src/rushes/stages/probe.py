"""Probe: what a file holds, who it is, and where chunks may begin."""

from rushes.domain.stage import Card, Scope
from rushes.media.probe import probe
from rushes.stages.port import Work


class Probe:
    """Reads the original once and saves its facts; its completion opens the plan."""

    card = Card("probe", 1, Scope.VIDEO, ("facts",), reads_source=True, opens_plan=True)

    def run(self, work: Work) -> None:
        """Save facts.json."""
        facts = probe(work.footage(), work.progress)
        if facts.video and not facts.video.seekable:
            work.log("the pictures are damaged or lack times: they are worked on in one piece")
        work.save_json("facts", "facts.json", facts.to_json())


STAGE = Probe()
