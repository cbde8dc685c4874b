"""The sidecar: all results of a video in one file next to it, from which it becomes searchable again. Pure.

The first line says which video it is, whose faces are seen in it and what was said of them; each other line is an
observation, exact as it was made.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.keys import JSON, canonical, is_id
from rushes.domain.observation import Observation

ENDING = "rushes.jsonl"
FORMAT = 1
_PEOPLE = "people"
_LATEST_US = 2**62


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A video's facts, its observations in film time, and its people: faces over time, and who they are."""

    facts: dict[str, JSON]
    lines: tuple[Observation, ...]
    people: dict[str, JSON]


def write(facts: dict[str, JSON], lines: Iterable[Observation], people: Mapping[str, JSON]) -> bytes:
    """The bytes of a sidecar."""
    head = {"rushes": FORMAT, **facts, **({_PEOPLE: dict(people)} if people else {})}
    rows = [head, *(line.to_json() for line in lines)]
    return b"".join(canonical(row) + b"\n" for row in rows)


def read(data: bytes) -> Sidecar | None:
    """The inverse of write; None if it is none of ours, or of a later time."""
    try:
        head, *rows = [json.loads(line) for line in data.splitlines()]
        if head["rushes"] != FORMAT or not is_id(head["video"]):
            return None
        people = dict(head.pop(_PEOPLE, {}))
        lines = tuple(Observation.from_json(row) for row in rows)
        return Sidecar(head, lines, people) if all(map(_is_true, lines)) else None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError):
        return None


def _is_true(line: Observation) -> bool:
    """Whether an observation can be: words that are text, and names, figures and times that every index can keep."""
    names = is_id(line.kind) and (line.language == "" or is_id(line.language))
    span = line.span
    times = span.base > 0 and -_LATEST_US < span.start_us <= span.end_us < _LATEST_US
    return names and isinstance(line.text, str) and 0 <= line.confidence <= 1 and times


def kinds(lines: Sequence[Observation]) -> list[str]:
    """The kinds of observation that there are."""
    return sorted({line.kind for line in lines})
