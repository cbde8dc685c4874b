"""Which run readers see: the newest whose step is done, and before the first, the newest partial one. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """One stage of one run that offers observations of a kind; `whole` if it is made of the whole video at once."""

    kind: str
    job: str
    created_at: str
    stage: str
    whole: bool


def choose(candidates: Iterable[Candidate], done: Callable[[str, str], bool]) -> Mapping[str, tuple[str, str]]:
    """(job, stage) for each kind. `done` says whether a stage of a job is finished; asked only where it matters.

    In the same run, what was assembled from the whole video stands for the chunks that it was assembled from.
    """
    kinds: dict[str, set[Candidate]] = {}
    for candidate in candidates:
        kinds.setdefault(candidate.kind, set()).add(candidate)
    return {kind: _best(some, done) for kind, some in kinds.items()}


def _best(some: set[Candidate], done: Callable[[str, str], bool]) -> tuple[str, str]:
    newest_first = sorted(some, key=lambda c: (c.created_at, c.job, c.whole, c.stage), reverse=True)
    first = newest_first[0]
    if len(newest_first) > 1:  # a whole-video task that offers something is done
        first = next((c for c in newest_first if c.whole or done(c.job, c.stage)), first)
    return first.job, first.stage
