"""Where a task stands: what an answer about a fence rests on, in every store that keeps rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.domain.task import Order, Said


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

    def order(self, fence: int, worker: str) -> Order:
        """What a renewal says of that lease."""
        if self.holds(fence, worker):
            return Order.GIVE_BACK if self.paused > 1 else Order.KEEP
        if self.state == "done" and self.fence == fence:
            return Order.KEEP
        return Order.CANCELLED if self.cancelled else Order.LOST

    def told(self, **more: JSON) -> dict[str, JSON]:
        """What an event about its attempt says."""
        return {"stage": self.stage, "chunk": self.chunk, "fence": self.fence, "worker": self.worker, **more}


def orders(rows: Mapping[str, Standing], worker: str, holding: Mapping[str, int]) -> dict[str, Order]:
    """What a renewal says of each task held; one that does not exist is lost."""
    return {task: rows[task].order(fence, worker) if task in rows else Order.LOST for task, fence in holding.items()}
