"""The sidecar: everything known of a film in one file beside it, from which it becomes searchable again. Pure.

The first line says which video it is, whose faces are seen in it and what was said of them; each other line is an
observation, exact as it was made.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.keys import JSON, canonical
from rushes.domain.observation import Observation

ENDING = "rushes.jsonl"
FORMAT = 1
_PEOPLE = "people"


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
        if head["rushes"] != FORMAT or not head["video"]:
            return None
        people = dict(head.pop(_PEOPLE, {}))
        return Sidecar(head, tuple(Observation.from_json(row) for row in rows), people)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def kinds(lines: Sequence[Observation]) -> list[str]:
    """The kinds of observation that there are."""
    return sorted({line.kind for line in lines})
