"""The attempts of a worker as spans: from the claim until the outcome is in the ledger."""

import time

from rushes import tracing
from rushes.domain.task import Lease, trace_of
from rushes.worker.commands import Complete, Fail, OutboxEntry
from rushes.worker.inputs import Claimed, Input, OutboxEntryWritten, TaskFailed, TaskFinished


class TaskSpans:
    """Watches the inputs of a worker's core; only where traces are on."""

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def on_input(self, input: Input) -> None:
        """Called in the worker's loop."""
        match input:
            case Claimed(leases=leases):
                for lease in leases:
                    self._begin(lease)
            case TaskFinished(finish):
                self._ended[finish.task] = time.time()
            case TaskFailed(task=task):
                self._ended[task] = time.time()
            case OutboxEntryWritten(entry):
                self._end(entry)

    def _begin(self, lease: Lease) -> None:
        self._begun[lease.task] = time.time()
        about = {name: getattr(lease, name) for name in ("job", "task", "stage", "chunk", "lane")}
        tracing.begin_task(lease.task, trace_of(lease.spec), about | {"attempt": lease.fence})

    def _end(self, entry: OutboxEntry) -> None:
        task, now = entry.lease.task, time.time()
        ended = self._ended.pop(task, now)
        began = self._begun.pop(task, ended)
        verb = {Complete: "complete", Fail: "fail"}.get(type(entry), "give_back")
        phases = {f"stage {entry.lease.stage}": (began, ended), f"ledger.{verb}": (ended, now)}
        tracing.end_task(task, phases, failed=entry.failure.kind if isinstance(entry, Fail) else "", outcome=verb)
