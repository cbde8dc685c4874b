"""Sources: places that videos come from. One bad entry is reported and never stops the rest."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may be footage: absolute, links resolved, regular, not empty, readable."""

    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that was asked for, or looks like footage, and is not taken in; the reason is for people."""

    path: Path
    reason: str


class Source(Protocol):
    """A place that videos come from."""

    def find(self, paths: Iterable[Path]) -> Iterator[Found | Refused]:
        """What there is at these places, each file once, in order; never raises for one entry."""
