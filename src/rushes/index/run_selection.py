"""Which run readers see: the selected one, else the newest whose step is done, else the newest. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """One stage of one run that offers observations of a kind; `whole` if it is made of the whole video at once."""

    kind: str
    job: str
    created_at: str
    stage: str
    whole: bool
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """Which run somebody wants to see of a kind: one job's, or the newest of a profile; where it is there."""

    run: str = ""
    profile: str = ""

    def among(self, some: Collection[Candidate]) -> Collection[Candidate]:
        """Those that are wanted, or all if there is none."""
        wanted = [c for c in some if c.job == self.run] if self.run else []
        wanted = wanted or ([c for c in some if c.profile == self.profile] if self.profile else [])
        return wanted or some


def choose(
    candidates: Iterable[Candidate], done: Callable[[str, str], bool], policies: Mapping[str, Policy] | None = None
) -> Mapping[str, tuple[str, str]]:
    """(job, stage) for each kind. `done` says whether a stage of a job is finished; asked only where it matters.

    In the same run, what was assembled from the whole video stands for the chunks that it was assembled from.
    """
    wanted = policies or {}
    kinds: dict[str, set[Candidate]] = {}
    for candidate in candidates:
        kinds.setdefault(candidate.kind, set()).add(candidate)
    return {kind: _best(wanted.get(kind, Policy()).among(some), done) for kind, some in kinds.items()}


def _best(some: Collection[Candidate], done: Callable[[str, str], bool]) -> tuple[str, str]:
    newest_first = sorted(some, key=lambda c: (c.created_at, c.job, c.whole, c.stage), reverse=True)
    first = newest_first[0]
    if len(newest_first) > 1:  # a whole-video task that offers something is done
        first = next((c for c in newest_first if c.whole or done(c.job, c.stage)), first)
    return first.job, first.stage
