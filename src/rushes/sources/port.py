"""Sources: places that videos come from. One bad entry is reported and never stops the rest."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may be footage: absolute, links resolved, regular, not empty, readable."""

    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was asked for, or looks like footage, and is not taken in; the reason is for people."""

    path: Path
    reason: str
