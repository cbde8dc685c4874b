"""One input of the corpus: how it is made, and what is expected of it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Expectation(StrEnum):
    """What must come of an input."""

    REFUSED = "refused"  # with a reason
    RIGHT = "right"  # every frame as an undivided decode shows it
    EITHER = "either"  # a broken film: refused, or what can be decoded is right


@dataclass(frozen=True, slots=True)
class Lure:
    """What a hostile file may try to reach: a private film, a private text, and a server that counts who connects."""

    film: Path
    text: Path
    url: str


Maker = Callable[[Path, Lure], object]


@dataclass(frozen=True, slots=True)
class Case:
    """A file to be made, by its name."""

    name: str
    make: Maker
    expect: Expectation = Expectation.REFUSED
    reason: str = ""  # of a refusal, as a regular expression
    frames: int | None = None  # how many a right film has
