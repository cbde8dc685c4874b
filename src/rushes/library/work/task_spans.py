"""The attempts of a worker as spans: from the claim until the outcome is in the ledger."""

import time
from collections.abc import Mapping

from rushes import tracing
from rushes.domain.task import Finish, Lease, LeaseStatus, trace_of
from rushes.worker.commands import Complete, Fail, OutboxEntry
from rushes.worker.inputs import Claimed, Input, OutboxEntryWritten, RenewalReply, TaskFailed, TaskFinished


class TaskSpans:
    """Watches the inputs of a worker's core; only where traces are on."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[int, float]] = {}  # the fence of each attempt that is under way, and since when
        self._ended: dict[str, float] = {}

    def on_input(self, input: Input) -> None:
        """Called in the worker's loop."""
        match input:
            case Claimed(leases=leases):
                for lease in leases:
                    self._begin(lease)
            case TaskFinished(Finish(task, fence)) | TaskFailed(task=task, fence=fence):
                if self._is_at(task, fence):
                    self._ended[task] = time.time()
            case OutboxEntryWritten(entry):
                if self._is_at(entry.lease.task, entry.lease.fence):
                    self._end(entry)
            case RenewalReply(statuses):
                for (task, fence), status in statuses.items():
                    if status in (LeaseStatus.LOST, LeaseStatus.CANCELLED) and self._is_at(task, fence):
                        self._over(task, status.value, {}, failed=status.value)

    def _is_at(self, task: str, fence: int) -> bool:
        return task in self._begun and self._begun[task][0] == fence

    def _begin(self, lease: Lease) -> None:
        self._begun[lease.task] = lease.fence, time.time()
        about = {name: getattr(lease, name) for name in ("job", "task", "stage", "chunk", "lane")}
        tracing.begin_task(lease.task, trace_of(lease.spec), about | {"attempt": lease.fence})

    def _end(self, entry: OutboxEntry) -> None:
        task, now = entry.lease.task, time.time()
        ended, began = self._ended.get(task, now), self._begun[task][1]
        verb = {Complete: "complete", Fail: "fail"}.get(type(entry), "give_back")
        phases = {f"stage {entry.lease.stage}": (began, ended), f"ledger.{verb}": (ended, now)}
        self._over(task, verb, phases, failed=entry.failure.kind if isinstance(entry, Fail) else "")

    def _over(self, task: str, outcome: str, phases: Mapping[str, tuple[float, float]], failed: str) -> None:
        del self._begun[task]
        self._ended.pop(task, None)
        tracing.end_task(task, phases, failed=failed, outcome=outcome)
