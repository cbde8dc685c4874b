"""The transport: hints that there may be work. Lose all of it and nothing is lost."""

from collections.abc import Sequence
from typing import Protocol


class Transport(Protocol):
    """Carries task ids to whoever waits; hints may be lost, doubled or late."""

    def announce(self, lane: str, tasks: Sequence[str]) -> None:
        """Say that these tasks may be ready. Never raises: a hint is worth no failure."""

    def wait(self, lanes: Sequence[str], seconds: float) -> tuple[str, ...]:
        """Sleep until a hint comes or the time is over; answers hinted ids (() = look for yourself)."""

    def wake(self) -> None:
        """End a wait of this process at once (a slot became free, a signal came)."""

    def close(self) -> None:
        """Let go of connections."""
