"""A verb's transaction on DynamoDB: what finishing and commanding mean for many rows; what does not fit is owed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from rushes.aws.table import Item, Key, Table
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand
from rushes.domain.keys import JSON
from rushes.domain.task import Draft, Finish, TaskState
from rushes.ledger.dynamodb_moves import Moves
from rushes.ledger.dynamodb_rows import JobRow, LanesRow, TaskRow, about_key, draft_of, job_key, task_key
from rushes.ledger.dynamodb_texts import loosened
from rushes.ledger.dynamodb_unit import PAGE

Debt = dict[str, JSON]
_NOT_BEGUN = (TaskState.WAITING, TaskState.READY, TaskState.DEAD)


class Turn(Moves):
    """One verb's transaction; whatever may be wide is a debt that is paid page by page, the first page here."""

    def __init__(
        self,
        table: Table,
        wall: int,
        stamp: str,
        seen: Mapping[Key, Item | None],
        plans: dict[tuple[str, int], list[Draft]],
    ) -> None:
        """`plans` keeps the plan that is being opened from page to page."""
        super().__init__(table, wall, stamp, seen)
        self.plans = plans

    def finish(self, won: Mapping[str, Finish]) -> tuple[list[str], list[str]]:
        """These are done; the tasks that an opened plan made ready, and those whose last need was met."""
        rows = {task: row for task in won if (row := self.task(task))}
        about = {task: row.told(seconds=won[task].seconds) for task, row in rows.items()}
        for task, row in rows.items():
            self.move(row, TaskState.DONE)
            row.worker, row.outcome, row.finished, row.adopted = "", "done", self.wall, won[task].adopted
        jobs = {row.job: self.its(row) for row in rows.values()}
        begins = [task for task, row in rows.items() if row.first and not jobs[row.job].opened]
        met = [id for task in begins for id in self._fan_out(rows[task])]  # before the plan adds those whom it meets
        opened: list[str] = []
        for job in jobs.values():
            opened += self._gain(job, {t: won[t] for t, row in rows.items() if row.job == job.id}, about)
        met += [id for task, row in rows.items() if task not in begins for id in self._fan_out(row)]
        for job in jobs.values():
            self.settle(job)
        return opened, met

    def _fan_out(self, row: TaskRow) -> list[str]:
        return self.owe(self.its(row), {"kind": "fan", "task": row.id, "after": 0}) if row.then else []

    def _gain(self, job: JobRow, mine: Mapping[str, Finish], about: Mapping[str, dict[str, JSON]]) -> Sequence[str]:
        for adopted, type in ((False, EventType.DONE), (True, EventType.ADOPTED)):
            for task, finish in mine.items():
                if finish.adopted is adopted:
                    self.tell(job, type, about[task], task)
        for result in (r for finish in mine.values() for r in finish.results):
            row = [result.output, result.manifest_sha256, result.size, result.count, result.schema_version]
            self.once((f"result#{job.owner}#{result.key}", "result"), [*row, result.publishes])
            if result.publishes:
                self.once(("debts", f"{job.owner}#{job.id}#{result.key}"), [job.owner, job.id, result.key])
        first = mine.get(job.first)
        return () if first is None or job.opened else self._open_plan(job, first.fence)

    def _open_plan(self, job: JobRow, fence: int) -> Sequence[str]:
        job.opened = True
        written = (f"job#{job.id}", f"plan#{fence:08d}")
        self.load([written, about_key(job.id)])
        about, facts = self.about(job.id), self.seen(written)
        if about is None or facts is None:
            return ()
        about.facts = json.loads(loosened(str(facts["body"])))
        self.touch(about)
        plan = self.plan(job, fence)
        self.plans.clear()
        self.plans[job.id, fence] = plan
        if not plan:
            return ()
        adopted = sum(draft.adopted for draft in plan)
        self.tell(job, EventType.PLANNED, {"tasks": len(plan), "adopted": adopted})
        job.total += len(plan)
        return self.owe(job, {"kind": "open", "fence": fence, "after": 0})

    def plan(self, job: JobRow, fence: int) -> list[Draft]:
        """The drafts of an attempt in plan order."""
        low = f"draft#{fence:08d}#"
        found = [draft_of(item) for item in self.table.query(f"job#{job.id}", low, low + "~")]
        return sorted((d for d in found if d.id != job.first), key=lambda d: (d.order, d.id))

    # What may be owed
    def owe(self, job: JobRow, debt: Debt) -> list[str]:
        """Pay what fits into this transaction and note the rest; the tasks that became ready."""
        ready, rest = self._paid(job, debt)
        if rest is not None:
            job.owed.append(rest)
            self.touch(job)
        return ready

    def pay(self, job: JobRow) -> list[str]:
        """Pay debts, the oldest first, as far as this transaction reaches."""
        ready: list[str] = []
        self.touch(job)
        while job.owed and not self.full:
            some, rest = self._paid(job, job.owed.pop(0))
            job.owed[:0] = [] if rest is None else [rest]
            ready += some
        self.settle(job)
        return ready

    def _paid(self, job: JobRow, debt: Debt) -> tuple[list[str], Debt | None]:
        pay = {"fan": self._fan, "open": self._open, "agree": self._agree, "revive": self._revive}[debt["kind"]]
        return pay(job, debt)

    def _fan(self, job: JobRow, debt: Debt) -> tuple[list[str], Debt | None]:
        """A task is done: meet the need of everybody who needs it."""
        row, begin = self.task(debt["task"]), int(debt["after"])
        ready: list[str] = []
        if row is None or row.state is not TaskState.DONE:
            return [], None
        some = list(islice(row.then.items(), begin, begin + PAGE))
        self.load([task_key(id) for id, _ in some] + [job_key(id.partition(".")[0]) for id, _ in some])
        for n, (id, bit) in enumerate(some, begin):
            if self.full:
                return ready, {**debt, "after": n}
            ready += [id] if self.meet(id, bit) else []
            other = self.task(id)
            if other and other.job != job.id:
                self.settle(self.its(other))
        return ready, None if begin + len(some) == len(row.then) else {**debt, "after": begin + len(some)}

    def _open(self, job: JobRow, debt: Debt) -> tuple[list[str], Debt | None]:
        """The plan is open: its drafts become tasks, in plan order."""
        fence, begin = int(debt["fence"]), int(debt["after"])
        ready: list[str] = []
        plan = self.plans.get((job.id, fence)) or self.plan(job, fence)
        then: dict[str, dict[str, int]] = {}
        for draft in plan:
            for bit, need in enumerate(dict.fromkeys(draft.needs)):
                if not need.is_key:
                    then.setdefault(need.ref, {})[draft.id] = bit
        first = self.task(job.first) if begin == 0 else None
        if first:
            first.then |= then.get(first.id, {})
            self.touch(first)
        met, known = self._look_up(job, plan, debt)
        for n, draft in enumerate(plan[begin:], begin):
            if self.full:
                return ready, {**debt, "after": n, "seq": job.seq}
            ready += [draft.id] if self.plant(job, draft, then.get(draft.id, {}), met, known) else []
            if draft.adopted:
                row = self.task(draft.id)
                self.tell(job, EventType.ADOPTED, row.told(seconds=0.0) if row else {}, draft.id)
        return ready, None

    def _look_up(self, job: JobRow, plan: Sequence[Draft], debt: Debt) -> tuple[set[str], set[str]]:
        """What the next page needs, read at once: the tasks that are done, and all whose state is known by that."""
        before, later = plan[: debt["after"]], plan[debt["after"] :]
        for draft in later:
            self.absent(task_key(draft.id))
        met = {job.first, *(draft.id for draft in plan if draft.adopted)}
        known = {job.first, *(draft.id for draft in plan)}
        if before and job.seq != debt["seq"]:  # something happened since the last page
            known -= {job.first, *(draft.id for draft in before)}
            met &= known
        needs = [need for draft in later[:PAGE] for need in draft.needs if need.is_key or need.ref not in known]
        keys = [(f"key#{need.ref}", "key") if need.is_key else task_key(need.ref) for need in needs]
        self.load([*keys, LanesRow.key])
        return met, known

    def _agree(self, job: JobRow, debt: Debt) -> tuple[list[str], Debt | None]:
        """The job was stopped, resumed or valued anew: its tasks are listed as that demands."""
        for row in self.tasks_of(job.id, debt.get("after", "")):
            if self.full:
                return [], {**debt, "after": row.id}
            self.agree(row)
        return [], None

    def _revive(self, job: JobRow, debt: Debt) -> tuple[list[str], Debt | None]:
        """Tasks are to be done again, in plan order; who has not begun waits for them."""
        rows = sorted(self.tasks_of(job.id), key=lambda row: row.at)
        chosen = [r for r in rows if _revivable(r, debt["again"]) and debt["stage"] in ("", r.stage)]
        chosen = [r for r in chosen if not debt["tasks"] or r.id in debt["tasks"]]
        chosen = [r for r in chosen if list(r.at) > debt["after"]]
        revived, rest = [], None
        for row in chosen:
            if self.full:
                rest = debt
                break
            self._refresh(job, row)
            revived.append(row.id)
            debt = {**debt, "after": list(row.at)}
        if not self._rearm(row for row in rows if row.state is not TaskState.DONE):
            return revived, debt
        for row in rows:
            if not self.full:
                self.ready(row)
                self.agree(row)
            else:
                rest = debt
        return revived, rest

    def _refresh(self, job: JobRow, row: TaskRow) -> None:
        row.due = None
        self.touch(row)
        if row.state is TaskState.READY:
            return
        self.tell(job, EventType.REVIVED, {"state": row.state.value}, row.id)
        self.move(row, TaskState.WAITING)
        row.failures, row.losses = 0, 0
        row.adopted, row.finished, row.progress = False, None, "0.0"

    def _rearm(self, undone: Iterable[TaskRow]) -> bool:
        """Whoever needs one of these and has not begun waits for it; False if there are more than fit."""
        for need in list(undone):
            self.load([task_key(id) for id in need.then] + [job_key(id.partition(".")[0]) for id in need.then])
            for id, bit in need.then.items():
                row = self.task(id)
                if row is None or row.state not in _NOT_BEGUN or row.unmet >> bit & 1:
                    continue
                if self.full:
                    return False
                row.unmet |= 1 << bit
                self.touch(row)
                if row.state is TaskState.READY:
                    self.move(row, TaskState.WAITING)
                    row.due = None
        return True

    # Commands
    def command(self, job: JobRow, command: JobCommand, value: int) -> None:
        """One write on the job; its tasks follow, now or owed."""
        before = (job.paused, job.cancelled, job.priority)
        if command is JobCommand.CANCEL:
            job.cancelled, job.paused, job.chunking = True, 0, False
            job.epoch += 1
            self.tell(job, EventType.CANCELLED, {})
        elif command is JobCommand.PRIORITY and job.priority != value:
            job.priority = value
            self.tell(job, EventType.PRIORITY, {"priority": value})
        elif command is JobCommand.RESUME and job.paused:
            job.paused = 0
            self.tell(job, EventType.RESUMED, {})
        elif command in (JobCommand.PAUSE, JobCommand.PAUSE_NOW) and job.paused < (
            how := 1 + (command is JobCommand.PAUSE_NOW)
        ):
            job.paused = how
            self.tell(job, EventType.PAUSED, {"now": how > 1})
        if before != (job.paused, job.cancelled, job.priority):
            self.follow(job)
        self.settle(job)

    def follow(self, job: JobRow) -> None:
        """The tasks of a job follow what was said to it."""
        job.owed = [debt for debt in job.owed if debt["kind"] != "agree"]
        self.owe(job, {"kind": "agree"})


def _revivable(row: TaskRow, again: bool) -> bool:
    return row.state is TaskState.DEAD or (row.state is TaskState.DONE if again else row.due is not None)
