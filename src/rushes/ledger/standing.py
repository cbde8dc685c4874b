"""Where a task stands: what an answer about a fence rests on, in every store that keeps rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.domain.task import LeaseStatus, Verdict


@dataclass(frozen=True, slots=True)
class TaskStatus:
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

    def verdict(self, fence: int, *outcomes: str) -> Verdict:
        """The answer to a lease that holds no more."""
        if self.fence == fence and self.state != "leased" and self.outcome in outcomes:
            return Verdict.OK
        return Verdict.CANCELLED if self.cancelled else Verdict.LOST

    def lease_status(self, fence: int, worker: str) -> LeaseStatus:
        """What a renewal says of that lease."""
        if self.holds(fence, worker):
            return LeaseStatus.GIVE_BACK if self.paused > 1 else LeaseStatus.KEEP
        if self.state == "done" and self.fence == fence:
            return LeaseStatus.KEEP
        return LeaseStatus.CANCELLED if self.cancelled else LeaseStatus.LOST

    def told(self, **more: JSON) -> dict[str, JSON]:
        """What an event about its attempt says."""
        return {"stage": self.stage, "chunk": self.chunk, "fence": self.fence, "worker": self.worker, **more}


def orders(rows: Mapping[str, TaskStatus], worker: str, holding: Mapping[str, int]) -> dict[str, LeaseStatus]:
    """What a renewal says of each task held; one that does not exist is lost."""
    return {
        task: rows[task].lease_status(fence, worker) if task in rows else LeaseStatus.LOST
        for task, fence in holding.items()
    }
