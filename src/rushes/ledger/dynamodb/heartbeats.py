"""When each worker's row was last seen to change, by this process's own clock: nobody's wall clock is trusted."""

from dataclasses import dataclass, field

from rushes.domain.task import LEASE_SECONDS
from rushes.ledger.clock import Seconds
from rushes.ledger.dynamodb.rows import WorkerRow


@dataclass(slots=True)
class Heartbeats:
    """What the ledgers of one process have seen of workers, and when."""

    clock: Seconds
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)  # worker -> heartbeat, when
    _times: dict[str, float] = field(default_factory=dict)

    def lease_left(self, row: WorkerRow, at: float | None = None) -> float:
        """Seconds until its lease is over; `at` is when the row was known to be as it is."""
        now = self.clock()
        if self._seen.get(row.id, (-1, 0.0))[0] != row.heartbeat:
            self._seen[row.id] = row.heartbeat, now if at is None else at
        return 0.0 if row.left else max(0.0, self._seen[row.id][1] + LEASE_SECONDS - now)

    def since_over(self, worker: str) -> float:
        """Seconds since this process first saw that the worker is over."""
        return self.clock() - self._times.setdefault(worker, self.clock())

    def is_due(self, name: str, seconds: float) -> bool:
        """Whether something that is done every so many seconds is due; it counts as done now."""
        now, last = self.clock(), self._times.get(name)
        if last is not None and now - last < seconds:
            return False
        self._times[name] = now
        return True
