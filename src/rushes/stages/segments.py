"""Segments: the text of the whole film, merged over time, with its entities."""

from collections.abc import Iterator
from dataclasses import replace

from rushes.domain.observation import Observation, load
from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work
from rushes.stages.vision.text_segments import find_entities, merge_readings


class Segments:
    """Merges the readings of all chunks."""

    spec = StageSpec("segments", 1, Scope.VIDEO, ("segments",), needs=("probe", "read_text"))

    def run(self, work: Work) -> None:
        """Save segments.jsonl: texts and, right after each, the entities in it."""
        parts = work.inputs("read_text", "lines")
        found = merge_readings(line for part in parts for line in load(part.bytes("readings.jsonl")))
        rows = [row for text in found for row in (text, *_entities(text))]
        work.save_observations("segments", "segments.jsonl", rows, kinds=["entity", "text"], texts=len(found))


def _entities(text: Observation) -> Iterator[Observation]:
    for found in find_entities(text.text):
        extra = {"type": found.type, **found.meaning}
        yield replace(text, kind="entity", text=found.text, extra=extra)
