"""What the verbs of a ledger on DynamoDB do to its rows, inside one transaction; what does not fit is owed."""

from collections.abc import Collection, Mapping

from rushes.domain.event import EventType
from rushes.domain.job import FINAL
from rushes.domain.keys import JSON
from rushes.domain.task import Draft, LeaseStatus, Need, TaskState, Verdict
from rushes.ledger.dynamodb_rows import (
    JobRow,
    TaskRow,
    failure_doc,
    task_key,
)
from rushes.ledger.dynamodb_unit import Unit
from rushes.ledger.settle import settled, worn_out

Debt = dict[str, JSON]
_COUNTED = {TaskState.READY: "live", TaskState.LEASED: "live", TaskState.DONE: "done", TaskState.DEAD: "dead"}
_NOT_BEGUN = (TaskState.WAITING, TaskState.READY, TaskState.DEAD)


class Moves(Unit):
    """Every move on the rows."""

    def held(self, worker: str, task: str, fence: int) -> TaskRow | None:
        """The task, if that lease counts."""
        row = self.task(task)
        return row if row and row.held_by(worker, fence) else None

    def said(self, task: str, fence: int, outcome: str) -> Verdict:
        """The answer to a lease that holds no more."""
        row = self.task(task)
        return Verdict.LOST if row is None else row.said(fence, outcome, self.its(row).cancelled)

    def order(self, task: str, worker: str, fence: int) -> LeaseStatus:
        """What a renewal says of a task."""
        row = self.task(task)
        if row is None:
            return LeaseStatus.LOST
        job = self.its(row)
        if row.held_by(worker, fence):
            return LeaseStatus.GIVE_BACK if job.paused > 1 else LeaseStatus.KEEP
        if row.state is TaskState.DONE and row.fence == fence:
            return LeaseStatus.KEEP
        return LeaseStatus.CANCELLED if job.cancelled else LeaseStatus.LOST

    def move(self, row: TaskRow, state: TaskState) -> None:
        """A task comes into a state, and is counted there."""
        job = self.its(row)
        for of, step in ((row.state, -1), (state, 1)):
            if of in _COUNTED:
                setattr(job, _COUNTED[of], getattr(job, _COUNTED[of]) + step)
        row.state = state
        if row.first:
            job.chunking = state is TaskState.LEASED
        self.touch(row)
        self.touch(job)

    def settle(self, job: JobRow) -> None:
        """State, and what a change of state owes; nothing is final while something is owed, but a cancel."""
        now, told = settled(job.state, job.counts, opened=job.opened, chunking=job.chunking, cancelled=job.cancelled)
        if job.owed and now in FINAL and not job.cancelled:
            return
        if now is not job.state and now in FINAL:
            job.finished, job.paused = self.wall, 0
        elif now not in FINAL:
            job.finished = None
        if now is not job.state:
            job.state = now
            self.touch(job)
        if told:
            self.tell(job, *told)

    def ready(self, row: TaskRow) -> bool:
        """A waiting task without unmet needs is ready; whether a claim can see it now."""
        if row.state is not TaskState.WAITING or row.unmet:
            return False
        self.move(row, TaskState.READY)
        return not self.its(row).stopped

    def lease(self, row: TaskRow, worker: str, take: str) -> None:
        """A worker has it."""
        self.move(row, TaskState.LEASED)
        row.worker, row.fence, row.take, row.outcome = worker, row.fence + 1, take, ""
        row.progress, row.started = "0.0", self.wall

    def release(self, row: TaskRow, outcome: str, due: int | None = None) -> None:
        """Its worker has it no more."""
        self.move(row, TaskState.READY)
        row.worker, row.outcome, row.due, row.progress = "", outcome, due, "0.0"

    def bury(self, row: TaskRow, outcome: str, about: dict[str, JSON]) -> None:
        """It is not tried again."""
        self.move(row, TaskState.DEAD)
        row.worker, row.outcome, row.finished = "", outcome, self.wall
        self.tell(self.its(row), EventType.DEAD, about, row.id)

    def lose(self, row: TaskRow) -> None:
        """Its worker is gone."""
        job = self.its(row)
        row.losses, job.losses = row.losses + 1, job.losses + 1
        self.tell(job, EventType.LOST, row.told(losses=row.losses), row.id)
        why = worn_out(row.losses)
        if why is None:
            self.release(row, "lost")
        else:
            row.failure = failure_doc(why)
            about = row.told(kind=why.kind, message=why.message, verdict=why.verdict, delay=None)
            self.bury(row, "lost", about)

    def meet(self, task: str, bit: int) -> bool:
        """One need of a task is there; whether that makes it ready. Twice changes nothing."""
        self.load([task_key(task)])
        row = self.task(task)
        if row is None or not row.unmet >> bit & 1:
            self.sure([task_key(task)])
            row = self.task(task)
        if row is None or not row.unmet >> bit & 1:
            return False
        row.unmet &= ~(1 << bit)
        self.touch(row)
        return self.ready(row)

    def plant(
        self,
        job: JobRow,
        draft: Draft,
        then: Mapping[str, int],
        met: Collection[str] = (),
        known: Collection[str] = (),
    ) -> bool:
        """A draft becomes a task; whether it is ready at once. Of needs that are `known`, those in `met` are done."""
        there = self.wanted(draft.id)
        row = TaskRow(
            id=draft.id, job=job.id, stage=draft.stage, chunk=draft.chunk, lane=draft.lane, order=draft.order,
            spec=draft.spec, first=draft.id == job.first, then={**there.then, **then}, epoch=job.epoch,
            created=self.wall, adopted=draft.adopted, rev=there.rev,
        )  # fmt: skip
        for bit, need in enumerate(dict.fromkeys(draft.needs)):
            if not self._register(need, draft, bit, met, known) and not draft.adopted:
                row.unmet |= 1 << bit
        self._lane(draft.lane)
        self.new(row)
        if not draft.adopted:
            return self.ready(row)
        self.move(row, TaskState.DONE)
        row.finished = self.wall
        return False

    def _register(self, need: Need, draft: Draft, bit: int, met: Collection[str], known: Collection[str]) -> bool:
        """Note who needs it, where that is not known from the plan; whether it is met."""
        if need.is_key:
            key = self.named(need.ref)
            key.then[draft.id] = bit
            self.touch(key)
            return key.there
        if need.ref in known:
            return need.ref in met
        row = self.wanted(need.ref)
        if row.job != draft.job:
            row.then[draft.id] = bit
            self.touch(row)
        return row.state is TaskState.DONE

    def _lane(self, lane: str) -> None:
        lanes = self.lanes()
        if lane not in lanes.lanes:
            self.sure([lanes.key])
            lanes = self.lanes()
        if lane not in lanes.lanes:
            lanes.lanes = sorted({*lanes.lanes, lane})
            self.touch(lanes)
