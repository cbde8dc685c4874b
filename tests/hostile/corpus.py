"""The corpus: hostile, broken and odd inputs, each with what is expected of it."""

from collections.abc import Iterator
from pathlib import Path

from tests.hostile import bombs, damage, disguises
from tests.hostile.case import Case, Expectation, Lure, Maker
from tests.media_kinds.films import Kind, make
from tests.media_kinds.kinds import KINDS


def corpus(seed: int) -> list[Case]:
    """All of it; the seed decides how good films are broken."""
    found = [*disguises.cases(), *bombs.cases(), *damage.cases(seed), *_kinds()]
    assert len({case.name for case in found}) == len(found)
    return found


def _kinds() -> Iterator[Case]:
    """Odd but honest films, and some that are refused."""
    for name, kind in KINDS.items():
        expect = Expectation.REFUSED if kind.refused else Expectation.RIGHT
        yield Case(f"kind_{name}", _made(kind), expect, kind.refused)


def _made(kind: Kind) -> Maker:
    def make_kind(path: Path, _lure: Lure) -> None:
        make(path, kind)

    return make_kind
