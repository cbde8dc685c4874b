"""What a worker counts of itself: every outcome that has reached the ledger, sweeps, claims, hints, slots, memory."""

import contextlib
from collections.abc import Iterable
from itertools import product

import psutil

from rushes.domain.keys import parse_task_id
from rushes.domain.task import LeaseStatus, Verdict
from rushes.metrics import PROCESS, Family, Registry
from rushes.worker.commands import Complete, Fail, GiveBack, OutboxEntry
from rushes.worker.core import State
from rushes.worker.inputs import Claimed, Hinted, Input, OutboxEntryWritten, RenewalReply, StoreUnavailable, Swept

OUTCOMES = ("done", "adopted", "failed", "dead", "lost", "given_back")
ALARMING = ("failed", "dead")


class WorkerFigures:
    """Counts the inputs of a worker's core."""

    def __init__(self, registry: Registry = PROCESS, stages: Iterable[str] = ()) -> None:
        """Alerts see only what comes after the first sample of a series: those that they ask for begin at 0."""
        self._registry = registry
        self._held: dict[str, int] = {}  # the fence of each task that is under way
        some = [("probe", outcome) for outcome in OUTCOMES]  # every job begins with this stage
        for stage, outcome in (*some, *product(stages, ALARMING)):
            registry.add("rushes_tasks_total", 0, stage=stage, outcome=outcome)

    def on_input(self, input: Input) -> None:
        """Called in the worker's loop."""
        count = self._registry.add
        match input:
            case OutboxEntryWritten(entry, verdict):
                self._written(entry, verdict)
            case Claimed(leases=leases):
                for lease in leases:
                    self._lose(lease.task, self._held.get(lease.task, 0))  # cancelled and revived, at another fence
                    self._held[lease.task] = lease.fence
                count("rushes_claims_total", got="something" if leases else "nothing")
            case Hinted(tasks=tasks):
                count("rushes_hints_received_total", len(tasks))
            case Swept():
                count("rushes_sweeps_total")
            case StoreUnavailable():
                count("rushes_store_outages_total")
            case RenewalReply(statuses):
                for (task, fence), status in statuses.items():
                    if status is LeaseStatus.LOST:
                        self._lose(task, fence)

    def _written(self, entry: OutboxEntry, verdict: Verdict) -> None:
        """What the ledger took; what it refused was lost, or its job was cancelled."""
        task, fence = entry.lease.task, entry.lease.fence
        if verdict is Verdict.LOST:
            self._lose(task, fence)
        elif self._held.get(task) == fence:
            del self._held[task]
        if verdict is Verdict.OK:
            self._count_outcome(entry)

    def _lose(self, task: str, fence: int) -> None:
        """Once: a renewal that was asked before an outcome was written answers after it."""
        if self._held.get(task) == fence:
            del self._held[task]
            self._registry.add("rushes_tasks_total", stage=parse_task_id(task)[1], outcome="lost")

    def _count_outcome(self, entry: OutboxEntry) -> None:
        count, stage = self._registry.add, entry.lease.stage
        match entry:
            case Complete(finish=finish):
                count("rushes_tasks_total", stage=stage, outcome="adopted" if finish.adopted else "done")
                if not finish.adopted:
                    self._registry.observe("rushes_task_seconds", finish.seconds, stage=stage)
            case Fail(delay=delay):
                count("rushes_tasks_total", stage=stage, outcome="dead" if delay is None else "failed")
                if delay is not None:
                    count("rushes_task_retries_total", stage=stage)
            case GiveBack():
                count("rushes_tasks_total", stage=stage, outcome="given_back")

    def families(self, state: State, free_bytes: int | None) -> list[Family]:
        """Everything, with slots, memory and disk as they are now."""
        busy = sum(not held.settled for held in list(state.held.values()))
        self._registry.set("rushes_worker_slots", busy, state="busy")
        self._registry.set("rushes_worker_slots", max(0, state.limits.slots - busy), state="free")
        self._registry.set("rushes_worker_memory_bytes", _memory())
        if free_bytes is not None:
            self._registry.set("rushes_worker_free_bytes", free_bytes)
        return self._registry.families()


def _memory() -> int:
    """Resident bytes of this process and of all below it."""
    me, total = psutil.Process(), 0
    for process in (me, *me.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total
