"""Segments: the text of the whole film, each line once for the time it is seen, and the entities in it."""

from collections.abc import Iterator
from dataclasses import replace

from rushes.domain.observation import MEDIA_TYPE, Observation, dump, load
from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work
from rushes.stages.sight.entities import entities
from rushes.stages.sight.lines import segments


class Segments:
    """Joins what was read in the chunks, so that no seam shows."""

    spec = StageSpec("segments", 1, Scope.VIDEO, ("segments",), needs=("probe", "read_text"))

    def run(self, work: Work) -> None:
        """Save segments.jsonl: texts and, right after each, the entities in it."""
        parts = work.inputs("read_text", "lines")
        found = segments(line for part in parts for line in load(part.bytes("readings.jsonl")))
        rows = [row for text in found for row in (text, *_entities(text))]
        work.save("segments", "segments.jsonl", dump(rows), MEDIA_TYPE)
        work.count("segments", len(rows))
        work.note("segments", kinds=["entity", "text"], texts=len(found))


def _entities(text: Observation) -> Iterator[Observation]:
    for found in entities(text.text):
        extra = {"type": found.type, **found.meaning}
        yield replace(text, kind="entity", text=found.text, extra=extra)


STAGE = Segments()
