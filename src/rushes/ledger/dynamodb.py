"""The ledger on DynamoDB: one table, every verb within 90 items of a transaction; what does not fit is owed.

Decisions are made here on rows as they were read; a transaction holds only if none of them has changed since.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

from rushes.aws.table import Table
from rushes.domain.errors import NotFound, Refused
from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import LEASE_SECONDS, Draft, Failure, Finish, Lease, LeaseStatus, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger import dynamodb_claim, dynamodb_look, dynamodb_sweep
from rushes.ledger.clock import Seconds, boot_seconds
from rushes.ledger.dynamodb_rows import (
    AboutRow,
    JobRow,
    LanesRow,
    WorkerRow,
    about_key,
    draft_item,
    failure_doc,
    job_key,
    plan_item,
    task_key,
)
from rushes.ledger.dynamodb_store import Sightings, Store
from rushes.ledger.dynamodb_texts import far
from rushes.ledger.dynamodb_turn import Turn
from rushes.ledger.port import Completed, Debt, Page, Renewed, Submitted, SweepResult

DRAFT_SECONDS = 86_400
_WEIGHT = 60  # items of finishes in one transaction, so that the needs they meet still fit


class DynamoLedger:
    """Jobs, tasks, leases, results, events and workers in one table."""

    batch = dynamodb_claim.STATEMENTS
    finds_next = False

    def __init__(
        self,
        table: Table,
        clock: Seconds = boot_seconds,
        is_gone: Callable[[Incarnation], bool] = lambda _: False,
        sightings: Sightings | None = None,
    ) -> None:
        """`sightings` are shared by the ledgers of one process."""
        self._store = Store(table, clock, sightings or Sightings(clock))
        self._is_gone = is_gone

    # Taking in
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        """A job with its first task and first event; the same id again changes nothing."""
        number: list[int] = []
        spec, texts = far(new.id, first.spec)
        first = replace(first, spec=spec)
        if texts:
            self._store.save("submit", texts)

        def work(turn: Turn) -> Submitted:
            turn.load([job_key(new.id), about_key(new.id), task_key(first.id), LanesRow.key])
            there = turn.job(new.id)
            if there:  # ours, if a reply was cut
                return Submitted(dynamodb_look.one_job(turn, new.id), created=[there.number] == number)
            if not number:
                number.append(self._store.table.number(("numbers", "jobs")))
            turn.new(AboutRow(asdict(new)))
            _submit(turn, turn.new(JobRow(new.id, new.owner, number[0], new.priority, turn.wall, first.id)), new, first)
            return Submitted(dynamodb_look.one_job(turn, new.id), created=True)

        return self._store.change("submit", work)

    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
        """Write a page of the plan, unseen by claims: only its own attempt's completion reads it."""
        turn = self._store.turn()
        turn.load_tasks([task])
        row = turn.task(task)
        if row is None or not row.held_by(None, fence):
            return turn.said(task, fence, "done")
        expires = turn.wall // 1000 + DRAFT_SECONDS
        specs = {d.id: far(job, d.spec) for d in tasks}
        texts = {item["sk"]: item for _, some in specs.values() for item in some}  # several may share one
        drafts = [draft_item(replace(d, spec=specs[d.id][0]), fence, expires) for d in tasks]
        self._store.save("draft", [*texts.values(), *drafts, plan_item(job, fence, facts, expires)])
        return Verdict.OK

    def arrived(self, key: str, etag: str) -> tuple[str, ...]:
        """A blob key is there: meets every need of it once; answers the tasks that became ready."""
        ready: list[str] = []
        more = True
        while more:
            some, more = self._store.change("arrived", lambda turn: _arrive(turn, key, etag))
            ready += some
        return tuple(self._in_plan(ready))

    # Working
    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks in those lanes, by priority, age of the job and plan order."""
        return dynamodb_claim.claim(self._store, worker, lanes, n, hinted)

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        """Enter or keep the worker's row for a lease."""
        before = self._store.clock()
        seen = self._store.recall([(f"worker#{worker.id}", "worker")])

        def work(turn: Turn) -> tuple[Renewed, WorkerRow | None]:
            turn.load_tasks(holding)
            row = turn.worker(worker.id) or self._enter(turn, worker)
            if row.over:
                return Renewed(dict.fromkeys(holding, LeaseStatus.LOST), gone=True), None
            row.beat, row.note, row.left = row.beat + 1, note, False
            turn.touch(row)
            _note_progress(turn, worker.id, holding, progress)
            return Renewed({t: turn.order(t, worker.id, f) for t, f in holding.items()}, row.draining), row

        renewed, row = self._store.change("renew", work, seen)
        if row:
            self._store.sightings.see(row, before)
        self._return_doubts(worker.id, 0.0 if renewed.gone else LEASE_SECONDS)
        return renewed

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        """Done: results, count-down of dependants, events, job counters, debts."""
        said: list[Verdict] = []
        opened: list[str] = []
        met: list[str] = []
        for part in _parts(finishes):
            seen = self._store.recall_tasks(f.task for f in part)
            says, some, more = self._store.change("complete", partial(_finish, worker=worker, part=part), seen)
            said, opened, met = said + says, opened + some, met + more
        for job in self._store.owing(f.task.partition(".")[0] for f in finishes):
            (opened or met).extend(self._store.pay(job))
        return Completed(tuple(said), (*opened, *self._in_plan(met)))

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        """The attempt failed: ready again after `delay` seconds, or dead when it is None."""

        def work(turn: Turn) -> Verdict:
            turn.load_tasks([task])
            row = turn.held(worker, task, fence)
            if row is None:
                return turn.said(task, fence, "failed")
            job = turn.its(row)
            about = row.told(kind=failure.kind, message=failure.message, verdict=failure.verdict, delay=delay)
            turn.tell(job, EventType.FAILED, about, task)
            row.failures, job.failures, row.failure = row.failures + 1, job.failures + 1, failure_doc(failure)
            if delay is None:
                turn.bury(row, "failed", about)
            else:
                turn.release(row, "failed", turn.wall + round(delay * 1000) if delay > 0 else None)
            turn.settle(job)
            return Verdict.OK

        return self._store.change("fail", work)

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str) -> None:
        """Hand tasks back, claimable at once, counted as nothing."""
        for n in range(0, len(held), self.batch):
            part = held[n : n + self.batch]
            self._store.change("give_back", partial(_hand_back, worker=worker, held=part, reason=reason))

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """Release what dead workers held, flip due tasks, pay what is owed, strike out paid debts."""
        return dynamodb_sweep.sweep(self._store, self._is_gone, limit, paid)

    # Steering
    def control(self, target: str, command: JobCommand, value: int = 0) -> Job | None:
        """Tell a job or a worker."""
        if command in (JobCommand.DRAIN, JobCommand.LEAVE):
            if not dynamodb_sweep.tell_worker(self._store, target, command):
                raise NotFound(f"no worker {target}")
            return None

        def work(turn: Turn) -> Job:
            turn.load([job_key(target), about_key(target)])
            job = _job(turn, target)
            cancelled = command is JobCommand.CANCEL and job.cancelled
            if job.state in FINAL and command is not JobCommand.PRIORITY and not cancelled:
                raise Refused(f"job {target} is {job.state.value}")
            if job.state not in FINAL:
                turn.command(job, command, value)
            return dynamodb_look.one_job(turn, target)

        told = self._store.change("control", work)
        for job in self._store.owing([target]):
            self._store.pay(job)
        return told

    def revive(self, job: str, tasks: Collection[str] = (), stage: str = "", again: bool = False) -> tuple[str, ...]:
        """Make dead tasks ready with fresh tries, and end back-offs; a cancelled job goes on."""

        def work(turn: Turn) -> list[str]:
            row = _job(turn, job)
            if again and row.cancelled:
                return []
            if row.cancelled:
                row.cancelled = False
                turn.touch(row)
            debt = {"kind": "revive", "tasks": sorted(tasks), "stage": stage, "again": again, "after": []}
            revived = turn.owe(row, debt)
            turn.settle(row)
            return revived

        revived = self._store.change("revive", work)
        for owing in self._store.owing([job]):
            revived += self._store.pay(owing)
        return tuple(revived)

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        """Which of these results exist."""
        return dynamodb_look.known(self._store, owner, keys)

    def set_aside(self, owner: str, keys: Collection[str], reason: str) -> int:  # noqa: ARG002 - nobody reads it here
        """Take results out of the ledger; answers how many there were."""
        there = self.known(owner, set(keys))
        self._store.save("set_aside", gone=[(f"result#{owner}#{key}", "result") for key in there])
        return len(there)

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        """Keep log lines of an attempt; repeats change nothing."""
        dynamodb_look.log(self._store, task, fence, first, lines)

    # Looking
    def job(self, job: str) -> Job:
        """One job.

        Raises:
            NotFound: no such job.
        """
        return dynamodb_look.one_job(self._store.turn(), job)

    def jobs(
        self,
        owner: str,
        state: JobState | None = None,
        oldest_first: bool = False,
        cursor: str = "",
        limit: int = 100,
        ids: Collection[str] = (),
    ) -> Page[Job]:
        """An owner's jobs by time of creation, finished states by time of finish."""
        if ids:
            return dynamodb_look.named_jobs(self._store, owner, ids)
        return dynamodb_look.jobs(self._store, owner, state, oldest_first, cursor, limit)

    def tasks(
        self,
        job: str = "",
        state: TaskState | None = None,
        stage: str = "",
        ids: Collection[str] = (),
        cursor: str = "",
        limit: int = 500,
    ) -> Page[Task]:
        """Tasks of a job in plan order; without a job, of all jobs or those named."""
        return dynamodb_look.tasks(self._store, job, state, stage, ids, cursor, limit)

    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        """Numbered events after a number, or the log lines of a task."""
        if task and set(types) == {EventType.LOG}:
            return dynamodb_look.log_lines(self._store, job, task, after, limit)
        return dynamodb_look.events(self._store, job, after, types, task, limit)

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Jobs whose event number moved since the cursor; call again until there are none."""
        return dynamodb_look.changed(self._store, cursor)

    def workers(self) -> tuple[Worker, ...]:
        """Every worker that has a row."""
        return dynamodb_look.workers(self._store)

    def close(self) -> None:
        """Nothing is held open between requests."""

    def _return_doubts(self, worker: str, seconds: float) -> None:
        """Hand back what the worker was not handed for so long: its slots are full, or it is over."""
        with self._store.doubts.of(worker) as hand:
            if hand and self._store.doubts.age(hand) >= seconds:
                rows = dynamodb_claim.recalled(self._store, worker, hand)
                self.give_back(worker, [(row.id, row.fence) for row in rows], "not handed out")
                for row in rows:
                    del hand[row.key, row.take]

    def _enter(self, turn: Turn, worker: Incarnation) -> WorkerRow:
        number = self._store.table.number(("numbers", "workers"))
        return turn.new(WorkerRow(asdict(worker), number, turn.wall))

    def _in_plan(self, tasks: Sequence[str]) -> list[str]:
        """In plan order, jobs by age; what is alone is in order."""
        if len(tasks) < 2:
            return list(tasks)
        return dynamodb_look.in_plan(self._store.turn(self._store.recall(map(task_key, tasks))), tasks)


def _job(turn: Turn, id: str) -> JobRow:
    job = turn.job(id)
    if job is None:
        raise NotFound(f"no job {id}")
    return job


def _submit(turn: Turn, job: JobRow, new: NewJob, first: Draft) -> None:
    turn.tell(job, EventType.SUBMITTED, {"name": new.name, "recipe": new.recipe})
    job.opened, job.total = first.adopted, 1
    turn.plant(job, first, {})
    if first.adopted:
        row = turn.task(first.id)
        turn.tell(job, EventType.ADOPTED, row.told(seconds=0.0) if row else {}, first.id)
    turn.settle(job)


def _arrive(turn: Turn, name: str, etag: str) -> tuple[list[str], bool]:
    """A page of those who need the key; the arrival is noted with the last one, so that it can be repeated."""
    key = turn.named(name)
    ready: list[str] = []
    if etag in key.etags:
        return [], False
    key.there = True
    turn.touch(key)
    turn.load_tasks(list(key.then))
    for id, bit in key.then.items():
        if turn.full:
            return ready, True
        ready += [id] if turn.meet(id, bit) else []
        row = turn.task(id)
        if row:
            turn.settle(turn.its(row))
    key.etags.append(etag)
    return ready, False


def _hand_back(turn: Turn, worker: str, held: Sequence[tuple[str, int]], reason: str) -> None:
    turn.load_tasks([task for task, _ in held])
    for task, fence in held:
        row = turn.held(worker, task, fence)
        if row:
            turn.tell(turn.its(row), EventType.GIVEN_BACK, row.told(reason=reason), task)
            turn.release(row, "given_back")
            turn.settle(turn.its(row))


def _note_progress(turn: Turn, worker: str, holding: Mapping[str, int], progress: Mapping[str, float]) -> None:
    for task, fraction in progress.items():
        row = turn.held(worker, task, holding[task]) if task in holding and not turn.full else None
        if row and row.progress != repr(fraction):
            row.progress = repr(fraction)
            turn.touch(row)


def _finish(turn: Turn, worker: str, part: Sequence[Finish]) -> tuple[list[Verdict], list[str], list[str]]:
    turn.load_tasks([f.task for f in part])
    if not all(turn.held(worker, f.task, f.fence) for f in part):
        turn.sure(key for f in part for key in (task_key(f.task), job_key(f.task.partition(".")[0])))
    won: dict[str, Finish] = {}
    for finish in part:
        if turn.held(worker, finish.task, finish.fence):
            won.setdefault(finish.task, finish)
    opened, met = turn.finish(won)
    return [turn.said(f.task, f.fence, "done") for f in part], opened, met


def _parts(finishes: Sequence[Finish]) -> Iterator[list[Finish]]:
    """As many finishes as fit into one transaction."""
    part: list[Finish] = []
    weight = 0
    for finish in finishes:
        mine = 3 + sum(1 + result.publishes for result in finish.results)
        if part and weight + mine > _WEIGHT:
            yield part
            part, weight = [], 0
        part, weight = [*part, finish], weight + mine
    if part:
        yield part
