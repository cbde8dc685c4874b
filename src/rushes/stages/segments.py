"""Segments: the text of the whole film, merged over time, with its entities."""

from collections.abc import Iterator
from dataclasses import replace

from rushes.domain.keys import short
from rushes.domain.observation import Observation, load
from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work
from rushes.stages.vision.entities import find_entities
from rushes.stages.vision.text_segments import merge_readings, normalised, text_hash


class Segments:
    """Merges the readings of all chunks."""

    spec = StageSpec("segments", 2, Scope.VIDEO, ("segments",), needs=("probe", "read_text"))

    def run(self, work: Work) -> None:
        """Save segments.jsonl: texts and, right after each, the entities in it."""
        parts = work.inputs("read_text", "lines")
        merged = merge_readings(line for part in parts for line in load(part.bytes("readings.jsonl")))
        found = [_identified(work.video, text) for text in merged]
        rows = [row for text in found for row in (text, *_entities(text))]
        work.save_observations("segments", "segments.jsonl", rows, kinds=["entity", "text"], texts=len(found))


def _identified(video: str, text: Observation) -> Observation:
    """A segment with its id, which its entities name."""
    id = "seg_" + short([video, text.span.to_json(), text.text, text.box])
    words = {"normalized_text": normalised(text.text), "text_hash": text_hash(text.text)}
    return replace(text, extra={**text.extra, "segment": id, **words})


def _entities(text: Observation) -> Iterator[Observation]:
    for found in find_entities(text.text):
        value = {"type": found.type, "normalized_value": found.normalized, **found.meaning}
        yield replace(text, kind="entity", text=found.text, extra={"segment": text.extra["segment"], **value})
