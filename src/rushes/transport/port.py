"""The transport port: hints that there may be work. Losing all of them loses no work.

Nothing but `check` raises for a server that is away, and everything may be called from several threads at once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

Describe = Callable[[Sequence[str]], Mapping[str, str]]  # of some tasks, what those who read a queue are told


class Transport(Protocol):
    """Carries task ids to whoever waits; hints may be lost, doubled or late.

    `queues`: hints stay until somebody takes them, so a worker asks for them first and claims the ids it got;
    otherwise a hint only wakes, and a worker that looked and found nothing looks again after `look_seconds`.
    """

    queues: bool
    look_seconds: float

    def announce(self, lane: str, tasks: Sequence[str], attempt: int = 1) -> None:
        """Say that these tasks may be ready (after the commit that made them so). A hint is worth no failure.

        `attempt` is the number that their next attempt has, for whoever reads the messages of a queue.
        """

    def missing(self, lane: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """Those of these ready tasks that no hint is on its way for, as far as one can tell (reconcile asks)."""

    def wait(self, lanes: Sequence[str], seconds: float, n: int = 10) -> tuple[str, ...]:
        """Sleep until a hint comes or the time is over; takes up to n ids (() = look for yourself).

        With seconds 0 it only takes what is there. () comes only when the time is over or it was woken, also while
        the server is away. A worker waits in one thread per group of lanes, and only when it is idle.
        """

    def keep(self, tasks: Sequence[str]) -> None:
        """These are still being worked on: a transport that hands hints out again holds theirs back."""

    def settle(self, tasks: Sequence[str]) -> None:
        """Nobody needs a hint of these any more: done, failed, handed back, or somebody else has it."""

    def check(self, lanes: Sequence[str]) -> str:
        """Try it, for the doctor: in a few words how hints of these lanes come.

        Raises:
            RushesError: they do not come, and why.
        """

    def wake(self) -> None:
        """End every wait of this process at once (the worker leaves)."""

    def close(self) -> None:
        """Close connections."""
