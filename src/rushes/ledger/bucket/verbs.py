"""How verbs of the ledger deal with films: one that writes keeps them, one that reads tries again, a claim goes on."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from rushes.domain.task import Lease
from rushes.ledger.bucket.films import Films
from rushes.sqlite.file import ClosedFile
from rushes.telemetry import log

T = TypeVar("T")
P = ParamSpec("P")
_ATTEMPTS = 4  # to read films that other threads close


class _HasFilms(Protocol):
    films: Films


L = TypeVar("L", bound=_HasFilms)


def guarded(verb: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """A verb during which no film changes hands in this process."""

    @functools.wraps(verb)
    def keeping(self: L, /, *args: P.args, **named: P.kwargs) -> T:
        with self.films.guard:
            return verb(self, *args, **named)

    return keeping


def looking(verb: Callable[P, T]) -> Callable[P, T]:
    """A verb that only reads, without the guard: it reads again if a film is released or fetched meanwhile."""

    @functools.wraps(verb)
    def reading(*args: P.args, **named: P.kwargs) -> T:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(ClosedFile):
                return verb(*args, **named)
        return verb(*args, **named)

    return reading


@contextlib.contextmanager
def answering(leases: Sequence[Lease]) -> Iterator[None]:
    """What was leased before an error is answered, because nothing else frees it; the error comes again."""
    try:
        yield
    except Exception as e:
        if not leases:
            raise
        log.warning("another film cannot be worked on now: %s", e)
