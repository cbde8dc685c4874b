"""Leases of workers without credentials: whatever is said about a task carries the token that its claim answered."""

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest
from rushes.domain.errors import DamagedBlob, ForeignToken, ForgedToken, LeaseLost, Refused, StaleToken
from rushes.domain.job import JobCommand
from rushes.domain.keys import manifest_key
from rushes.domain.result import Result, result_of
from rushes.domain.task import Failure, Finish, Lease, LeaseStatus, Task, TaskState, Verdict, parse_spec
from rushes.domain.worker import NOW, Incarnation, lanes_at
from rushes.home import Home
from rushes.jobs.control import Reconciler, announce
from rushes.jobs.open_plan import PlanOpener
from rushes.ledger.pages import tasks_by_id
from rushes.ledger.port import Completed, Renewed, SweepResult
from rushes.ledger.unserved_lanes import UnservedLanes
from rushes.library.access.task_tokens import TaskToken, TokenKeys, TokenSigner
from rushes.worker.publish import sweep_page

TOKEN_SECONDS = 30 * 86_400  # a token outlives its lease: the fence says whether it still counts
KEYS_SECONDS = 10.0  # for which the keys that were read are used
SWEEP_SECONDS = 1.0  # in which all who ask get the same answer
SWEEP_PAGES = 10
WAITS = 16  # workers that wait here at once: each takes a thread
LONGEST_WAIT = 20.0
_LOST = Completed((Verdict.LOST,))
LINES, LINE = 1000, 4000  # of a log, at once; characters
LAST_LINE = 2**53
FAILURE_LINES, KIND = 100, 60
LONGEST_DELAY, LONGEST_TASK = 86_400.0, 1e7  # seconds


class RemoteLeases:
    """The ledger as workers without credentials reach it; `name` is that of their worker token."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self.home, self._clock = home, clock
        self._signer_at, self._signer = float("-inf"), TokenSigner(())
        self._sweeping, self._swept, self._swept_at = threading.Lock(), SweepResult(), float("-inf")
        self._waits = threading.BoundedSemaphore(WAITS)
        self._left = UnservedLanes(home.ledger)

    @property
    def batch(self) -> int:
        """How many tasks one claim or completion may carry."""
        return self.home.ledger.batch

    def renew(
        self, name: str, worker: Incarnation, held: Sequence[tuple[str, float]], note: str
    ) -> tuple[list[LeaseStatus], Renewed]:
        """Enter or keep a worker's row; the status of each task that it holds, in order."""
        me = replace(worker, id=self.receipt(name, worker.id), owner=self.home.owner, lanes=self.lanes(worker.lanes))
        tokens = [self._try_read(token, me.id) for token, _ in held]
        progress = {token.task: _within(done, 1.0) for token, (_, done) in zip(tokens, held, strict=True) if token}
        holding = {token.task: token.fence for token in tokens if token}
        renewed = self.home.ledger.renew(me, holding, progress, note[:200])
        self.home.transport.keep(list(holding))
        return [renewed.leases[token.task] if token else LeaseStatus.LOST for token in tokens], renewed

    def claim(
        self, name: str, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str], *, again: bool = False
    ) -> list[tuple[Lease, str]]:
        """Leases in those of the lanes that are footage's, each with its token; `again`: and all that it holds."""
        me, taken = self.receipt(name, worker), self.lanes(lanes)
        leases = self._held_by(me) if again else ()
        if taken and n > 0:
            leases += self.home.ledger.claim(me, (*taken, *self._left.beside(taken)), min(n, self.batch), hinted)
        return [(replace_lane(lease), self._sign(me, lease)) for lease in leases]

    def _held_by(self, me: str) -> tuple[Lease, ...]:
        held = [task for worker in self.home.ledger.workers() if worker.incarnation.id == me for task in worker.held]
        rows = tasks_by_id(self.home.ledger, held)
        return tuple(lease_of(row) for row in rows if (row.state, row.worker) == (TaskState.LEASED, me))

    def complete(self, finishes: Sequence[tuple[str, bool, float]]) -> Completed:
        """Tasks are done: token, whether nothing was run, and seconds. Their results are read from their manifests.

        Raises:
            DamagedBlob: a result is not there.
        """
        tokens = [self._try_read(token) for token, _, _ in finishes]
        rows = {task.id: task for task in tasks_by_id(self.home.ledger, [t.task for t in tokens if t])}
        replies: list[Completed] = []
        for token, (_, adopted, seconds) in zip(tokens, finishes, strict=True):
            row = rows.get(token.task) if token else None
            if token and row and row.fence == token.fence:
                replies.append(self._complete(token, lease_of(row), adopted=adopted, seconds=seconds))
            else:
                replies.append(_LOST)
        return Completed(tuple(r.verdicts[0] for r in replies), tuple(task for r in replies for task in r.ready))

    def fail(self, token: str, failure: Failure, delay: float | None) -> Verdict:
        """The attempt failed."""
        read = self._try_read(token)
        if not read:
            return Verdict.LOST
        self.home.transport.settle([read.task])
        later = None if delay is None else _within(delay, LONGEST_DELAY)
        return self.home.ledger.fail(read.receipt, read.task, read.fence, _bounded(failure), later)

    def give_back(self, tokens: Sequence[str], reason: str, delay: float = 0.0) -> None:
        """Free them, at once or after so many seconds."""
        for read in filter(None, map(self._try_read, tokens)):
            later = _within(delay, LONGEST_DELAY)
            self.home.ledger.give_back(read.receipt, [(read.task, read.fence)], reason[:200], later)
            self.home.transport.settle([read.task])
            if not delay:
                announce(self.home, [read.task])

    def log(self, token: str, first: int, lines: Sequence[str]) -> None:
        """Keep what an attempt has printed. Raises Refused: the number is out of range."""
        read = self.read(token)
        if not 0 <= first < LAST_LINE:
            raise Refused("lines are numbered from 0 on")
        self.home.ledger.log(read.task, read.fence, first, [line[:LINE] for line in lines[:LINES]])

    def sweep(self) -> SweepResult:
        """Release, announce and publish; those who ask at the same time get the same answer."""
        with self._sweeping:
            if self._clock() - self._swept_at >= SWEEP_SECONDS:
                self._swept = self._sweep()
                self._swept_at = self._clock()
            return replace(self._swept, debts=())

    def wait(self, lanes: Sequence[str], seconds: float, goes_on: Callable[[], bool]) -> bool | None:
        """Whether there may be work by now; None if too many wait here already."""
        if not self._waits.acquire(blocking=False):
            return None
        try:
            end, taken = self._clock() + min(seconds, LONGEST_WAIT), self.lanes(lanes)
            while taken and goes_on() and (left := end - self._clock()) > 0:
                if self.home.transport.wait((*taken, *self._left.beside(taken)), min(1.0, left), 1):
                    return True
            return False
        finally:
            self._waits.release()

    def leave(self, name: str, worker: str) -> None:
        """A worker that holds nothing any more. Raises NotFound: it has left."""
        self.home.ledger.control(self.receipt(name, worker), JobCommand.LEAVE)

    def read(self, token: str) -> TaskToken:
        """What a token of footage says. Raises ForgedToken, ExpiredToken, ForeignToken."""
        if self._clock() - self._signer_at > KEYS_SECONDS:
            self._load_keys()
        try:
            read = self._signer.read(token, self.home.owner)
        except ForgedToken:  # or signed with a key that is newer than those that we read
            self._load_keys()
            read = self._signer.read(token, self.home.owner)
        if read.queue:
            raise ForeignToken("this task token belongs to a job of a custom queue")
        return read

    def held(self, token: str) -> Lease:
        """The lease that a token is about, if it still counts.

        Raises:
            ForgedToken, ExpiredToken, ForeignToken, StaleToken: it cannot be used.
        """
        read = self.read(token)
        rows = self.home.ledger.tasks(ids=[read.task]).rows
        if not rows or (rows[0].state, rows[0].fence, rows[0].worker) != (TaskState.LEASED, read.fence, read.receipt):
            raise StaleToken(f"the lease of {read.task} at attempt {read.fence} has ended")
        return lease_of(rows[0])

    def results_of(self, lease: Lease) -> tuple[Result, ...]:
        """The results of a task that is said to be done, as their manifests say. Raises DamagedBlob."""
        spec = parse_spec(lease.spec)
        return tuple(self._result(str(spec["owner"]), key) for key in spec["results"].values())

    def _complete(self, token: TaskToken, lease: Lease, *, adopted: bool, seconds: float) -> Completed:
        finish = Finish(lease.task, lease.fence, self.results_of(lease), adopted, _within(seconds, LONGEST_TASK))
        spec = self.home.specs.get(lease.stage)
        if opens := bool(spec and spec.opens_plan):
            try:
                self._opening(lease, finish)
            except LeaseLost:
                return _LOST
        reply = self.home.ledger.complete(token.receipt, [finish])
        self.home.transport.settle([lease.task])
        ready = (*reply.ready, *(self._opening.check(lease) if opens else ()))
        announce(self.home, ready)
        if any(result.publishes for result in finish.results):
            with self._sweeping:
                self._swept_at = float("-inf")  # names are owed: the next who sweeps publishes them
        return Completed(reply.verdicts, ready)

    def _result(self, owner: str, key: str) -> Result:
        data = read_document(self.home.blobs, manifest_key(owner, key))
        if data is None:
            raise DamagedBlob(f"the manifest of result {key} is missing")
        return result_of(parse_manifest(data, key), hashlib.sha256(data).hexdigest())

    @cached_property
    def _opening(self) -> PlanOpener:
        return PlanOpener(self.home.ledger, self.home.blobs, self.home.specs, self.home.job_names)

    def _sweep(self) -> SweepResult:
        sweeper = Reconciler(self.home.ledger, self.home.transport, self.home.lane_of)
        first, more = sweep_page(sweeper, self.home.blobs, self.home.job_names)
        for _ in range(SWEEP_PAGES):
            if not more:
                break
            _, more = sweep_page(sweeper, self.home.blobs, self.home.job_names)
        return first

    def lanes(self, asked: Sequence[str]) -> tuple[str, ...]:
        """Those of footage, and what of them only this server's site sees: it reads originals for its workers."""
        ours = {*self.home.every_lane, *NOW}
        return lanes_at(tuple(lane for lane in asked if lane in ours), self.home.site)

    def receipt(self, name: str, worker: str) -> str:
        """The id of a worker's row: nobody with another token can name it. Raises Refused."""
        if not 0 < len(worker) <= 150 or not worker.isascii() or not worker.isprintable() or "~" in worker:
            raise Refused("this is not the id of a worker")
        return f"{worker}~{name}"

    def _sign(self, receipt: str, lease: Lease) -> str:
        if self._clock() - self._signer_at > KEYS_SECONDS:
            self._load_keys()
        until = int(time.time()) + TOKEN_SECONDS
        token = TaskToken(self.home.owner, lease.job, lease.task, "", receipt, lease.fence, until)
        return self._signer.sign(token)

    def _load_keys(self) -> None:
        self._signer, self._signer_at = TokenKeys(self.home).signer(), self._clock()

    def _try_read(self, token: str, receipt: str = "") -> TaskToken | None:
        """None for a token that cannot be used, or that another worker was given."""
        try:
            read = self.read(token)
        except Refused:
            return None
        return read if receipt in ("", read.receipt) else None


def lease_of(task: Task) -> Lease:
    """The lease that a task is held by."""
    return Lease(
        task.id, task.fence, task.job, task.stage, task.chunk, task.lane, task.spec, task.failures, task.losses
    )


def replace_lane(lease: Lease) -> Lease:
    """The lease as a worker sees it, which belongs to no site."""
    return lease._replace(lane=lease.lane.partition("@")[0])


def _within(value: float, most: float) -> float:
    """A number that a worker reports, from 0 to `most`; NaN is 0."""
    return min(most, max(0.0, value))


def _bounded(failure: Failure) -> Failure:
    """What a worker reports of a failure, cut to what people read."""
    lines = tuple(line[:LINE] for line in failure.lines[-FAILURE_LINES:])
    message, hint = failure.message[:LINE], failure.hint[:LINE]
    return replace(
        failure, kind=failure.kind[:KIND], message=message, hint=hint, verdict=failure.verdict[:LINE],
        lines=lines, at=failure.at[:KIND],
    )  # fmt: skip
