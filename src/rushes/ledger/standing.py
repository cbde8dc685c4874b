"""Where a task stands: what an answer about a fence rests on, in every store that keeps rows."""

from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.domain.task import Said


@dataclass(frozen=True, slots=True)
class Standing:
    """The fields in the order of the statement `standing`."""

    id: str
    key: int
    state: str
    fence: int
    outcome: str | None
    worker: str | None
    cancelled: bool
    paused: int
    stage: str
    chunk: int | None
    losses: int

    def holds(self, fence: int, worker: str | None = None) -> bool:
        """Whether that lease is the one that counts."""
        return self.state == "leased" and self.fence == fence and worker in (None, self.worker)

    def said(self, fence: int, *outcomes: str) -> Said:
        """The answer to a lease that holds no more."""
        if self.fence == fence and self.state != "leased" and self.outcome in outcomes:
            return Said.OK
        return Said.CANCELLED if self.cancelled else Said.LOST

    def told(self, **more: JSON) -> dict[str, JSON]:
        """What an event about its attempt says."""
        return {"stage": self.stage, "chunk": self.chunk, "fence": self.fence, "worker": self.worker, **more}
