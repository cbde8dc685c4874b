"""Custom queues: jobs with opaque parameters that workers of users take, report on and complete.

Our own workers never take them: their lanes begin with `q-`, which no stage has.
"""

import base64
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rushes.domain.errors import ForeignToken, LeaseLost, NeverWorks, NotFound, Refused, RushesError, StaleToken
from rushes.domain.job import FINAL, Job, JobCommand, JobState, NewJob
from rushes.domain.keys import JSON, canonical, digest, is_id, job_id, task_id
from rushes.domain.task import (
    Draft,
    Failure,
    Finish,
    Lease,
    LeaseStatus,
    TaskState,
    Verdict,
    retry_delay,
    trace_of,
    with_trace,
)
from rushes.domain.video import Fingerprint
from rushes.domain.worker import QUEUE_SOURCE, QUEUE_STAGE, Incarnation, queue_lane
from rushes.home import Home, version
from rushes.jobs.control import Reconciler
from rushes.ledger.port import Page
from rushes.library.access.task_tokens import TaskToken, TokenKeys, TokenSigner
from rushes.library.created_range import ANY_TIME, CreatedRange
from rushes.library.queue_documents import INLINE_BYTES, Document, QueueDocuments
from rushes.metrics import PROCESS
from rushes.plan.planner import JobSpec
from rushes.tracing import current, span

RECIPE, STAGE = "queue", QUEUE_STAGE  # of a job in a queue of one's own: one task
MOST = 10  # jobs in one answer
DEFAULT_LEASE, LONGEST_LEASE = 300, 43_200  # seconds
TOKEN_SECONDS = 86_400  # a token outlives its lease: the fence says whether it still counts
SWEEP_SECONDS = 5.0
FRESH_SECONDS = 1.0  # a row that was written since has a whole lease
GoesOn = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job for a worker that is not ours: what it asks, which attempt it is, and the token to report with."""

    row: Job
    params: Document
    attempt: int
    token: str
    trace: str = ""

    @property
    def job(self) -> str:
        """Its id."""
        return self.row.id

    @property
    def queue(self) -> str:
        """Where it was put."""
        return self.row.queue


class Queues:
    """The queues that this home has by its setting `queues`."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self.home, self._clock = home, clock
        self._swept = -SWEEP_SECONDS

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return self.home.queues

    @cached_property
    def _documents(self) -> QueueDocuments:
        return QueueDocuments(self.home)

    @cached_property
    def _keys(self) -> TokenKeys:
        return TokenKeys(self.home)

    def enqueue(self, queue: str, request_id: str, params: bytes, priority: int = 0) -> Job:
        """A job; the same request id again answers the job there is, whatever its parameters.

        Raises:
            Refused: there is no such queue, no request id, or a job of another queue has it.
            OverLimit: the parameters are too long.
        """
        self._check(queue)
        if not is_id(request_id):
            raise Refused(
                "a request needs an id of letters, digits, _ and -", "Generate a random one for each request."
            )
        owner, request = self.home.owner, digest(["queue", request_id])
        job = job_id(owner, request)
        asked = {STAGE: self._kept(job, params)}
        payload = JobSpec(owner, Fingerprint(f"{QUEUE_SOURCE}{queue}", 0, 0), (STAGE,), asked).to_text()
        new = NewJob(job, owner, request, request_id, RECIPE, payload, priority, queue=queue)
        with span("job.submit", job=job, queue=queue):
            spec = with_trace(_spec(owner), current())
            first = Draft(task_id(job, STAGE, None), job, STAGE, None, spec, self._lane(queue))
            made = self.home.ledger.submit(new, first)
            if made.job.queue != queue:
                told = f"request {request_id!r} was already used for the queue {made.job.queue!r}"
                raise Refused(told, "Use a new id.")
            self.home.transport.announce(first.lane, [first.id])
        PROCESS.add("rushes_jobs_enqueued_total", made.created, queue=queue)
        return made.job

    def dequeue(
        self, queue: str, n: int, lease_seconds: int, wait_seconds: float = 0.0, goes_on: GoesOn = lambda: True
    ) -> Iterator[QueuedJob]:
        """Up to n jobs, each leased for so long; waits for the first one while somebody listens.

        Raises:
            Refused: there is no such queue, or a number is out of range.
        """
        self._check(queue)
        if not 1 <= n <= MOST or not 1 <= lease_seconds <= LONGEST_LEASE:
            raise Refused(f"ask for 1 to {MOST} jobs, and 1 to {LONGEST_LEASE} seconds")
        return self._take(queue, n, lease_seconds, self._clock() + wait_seconds, goes_on)

    def _take(self, queue: str, n: int, lease_seconds: int, until: float, goes_on: GoesOn) -> Iterator[QueuedJob]:
        signer, taken, looked, hinted = self._keys.signer(), 0, 0.0, True
        if self.home.transport.queues:
            self._hear(queue, 0.0, n)  # else hints of what is taken at once would pile up
        row = _Row(self.home, lease_seconds, self._clock)
        try:
            while taken < n and goes_on():
                is_late = self._clock() >= until
                if not (hinted or is_late or self._clock() - looked >= self._look_seconds):
                    hinted = self._wait(queue, until)
                    continue
                leases, looked = row.claim(self._lane(queue)), self._clock()
                if leases:
                    hinted, found = True, self._hand_out(signer, queue, row.hand_over(), leases[0])
                    if found:
                        taken += 1  # the lease is the caller's, also if it leaves now
                        yield found
                elif taken or is_late:
                    return
                else:
                    hinted = self._wait(queue, until)
        finally:
            row.leave()

    @property
    def _look_seconds(self) -> float:
        """How long an empty look is believed, where hints tell of what is new."""
        return min(self.home.transport.look_seconds, SWEEP_SECONDS)

    def extend(self, token: str, lease_seconds: int, queue: str = "") -> str:
        """Another lease from now on; answers a fresh token, so that work of any length can be reported.

        Raises:
            ForgedToken, ExpiredToken, ForeignToken, StaleToken: it cannot be used.
        """
        read = self._read(token, queue)
        if not 1 <= lease_seconds <= LONGEST_LEASE:
            raise Refused(f"a lease lasts 1 to {LONGEST_LEASE} seconds", "To hand the job back, use GiveBack.")
        holder = _holder(read.receipt, self.home.owner, lease_seconds)
        self.held(token)
        status = self.home.ledger.renew(holder, {read.task: read.fence}, {}).leases[read.task]
        if status is not LeaseStatus.KEEP:
            raise _stale(read)
        PROCESS.add("rushes_jobs_visibility_updates_total")
        return _fresh(self._keys.signer(), read)

    def complete(self, token: str, job: str, result: bytes = b"") -> Job:
        """Done; the same token again is done already. Raises as `extend`; ForeignToken: it is another job's."""
        read = self._read(token, job=job)
        holds = self._holds(read)  # else it is done already, or somebody else's
        if result and holds:
            self._documents.keep_result(read.job, read.fence, result)
        reply = self.home.ledger.complete(read.receipt, [Finish(read.task, read.fence)])
        return self._settle(read, reply.verdicts[0], counts=holds)

    def fail(self, token: str, message: str, *, retry: bool = True) -> Job:
        """The attempt failed: tried again after a while (four times in all), or never. Raises as `extend`."""
        read = self._read(token)
        (task,) = self.home.ledger.tasks(ids=[read.task]).rows or (None,)
        delay = retry_delay(task.failures + 1, secrets.randbelow(1000) / 1000) if task and retry else None
        failure = Failure("WorkFailed", message[:4000], "See what its worker reported.", NeverWorks.verdict)
        return self._settle(read, self.home.ledger.fail(read.receipt, read.task, read.fence, failure, delay))

    def give_back(self, token: str) -> None:
        """Free it at once, counted as nothing; a token that is stale changes nothing. Raises as `extend`."""
        read = self._read(token)
        self.home.ledger.give_back(read.receipt, [(read.task, read.fence)], "given back by its worker")
        self._leave(read)
        self.home.transport.announce(self._lane(read.queue), [read.task], read.fence + 1)

    def held(self, token: str) -> TaskToken:
        """What a token says, if its attempt is still the one that counts. Raises as `extend`."""
        read = self._read(token)
        if not self._holds(read):
            raise _stale(read)
        return read

    def _holds(self, read: TaskToken) -> bool:
        rows = self.home.ledger.tasks(ids=[read.task]).rows
        return bool(rows) and rows[0].state is TaskState.LEASED and rows[0].fence == read.fence

    def result(self, job: str) -> Document:
        """What a job that is done has made; none of a job that is not. Raises NotFound."""
        (task,) = self.home.ledger.tasks(self.job(job).id).rows
        return self._documents.result(job, task.fence) if task.state is TaskState.DONE else Document()

    def params(self, job: Job) -> Document | None:
        """What a job asks; None if it is missing."""
        asked = JobSpec.from_text(job.payload).options[STAGE]
        if "stored" in asked:
            return self._documents.params(job.id, int(asked["stored"]))
        return Document(params_of(job), size=params_size(job))

    def _kept(self, job: str, params: bytes) -> dict[str, Any]:
        if len(params) > INLINE_BYTES:
            return {"stored": self._documents.keep_params(job, params)}
        return {"params": base64.b64encode(params).decode("ascii")}

    def job(self, id: str) -> Job:
        """One job.

        Raises:
            NotFound: no such job in a queue of one's own.
        """
        job = self.home.ledger.job(id)
        if job.owner != self.home.owner or job.recipe != RECIPE:
            raise NotFound(f"no job {id[:60]!r}", what="job")
        return job

    def page(
        self,
        queue: str,
        state: JobState | None = None,
        created: CreatedRange = ANY_TIME,
        cursor: str = "",
        limit: int = 50,
    ) -> Page[Job]:
        """Jobs of a queue, or of all ("", slower: footage is passed over), newest first, created in a range of times.

        Raises:
            Refused: there is no such queue.
        """
        if queue:
            self._check(queue)
        owner, ledger = self.home.owner, self.home.ledger

        def fetch(at: str, n: int) -> Page[Job]:
            page = ledger.jobs(owner, state, cursor=at, limit=n, queue=queue)
            return Page(tuple(job for job in page.rows if job.recipe == RECIPE), page.cursor)

        return created.page(fetch, cursor, limit, by_creation=bool(queue) or state not in FINAL)

    def _lane(self, queue: str) -> str:
        return queue_lane(self.home.owner, queue)

    def _check(self, queue: str) -> None:
        if queue not in self.names:
            known = ", ".join(self.names) or "none; set queues in rushes.toml"
            raise Refused(f"unknown queue {queue[:60]!r}", f"Queues here: {known}")

    def _wait(self, queue: str, until: float) -> bool:
        """For a hint, up to a second; whether to look at once."""
        begin = self._clock()
        if begin - self._swept >= SWEEP_SECONDS:
            self._swept = begin
            if Reconciler(self.home.ledger, self.home.transport, self.home.lane_of).sweep().ready:
                return True
        seconds = min(1.0, max(0.0, until - begin))
        return self._hear(queue, seconds) or self._clock() - begin < seconds / 2  # woken

    def _hear(self, queue: str, seconds: float, n: int = 1) -> bool:
        """Whether a hint came; it is spent, as the lease in the ledger takes over."""
        hints = self.home.transport.wait([self._lane(queue)], seconds, n)
        self.home.transport.settle(hints)
        return bool(hints)

    def _hand_out(self, signer: TokenSigner, queue: str, holder: str, lease: Lease) -> QueuedJob | None:
        trace = trace_of(lease.spec)
        token = TaskToken(self.home.owner, lease.job, lease.task, queue, holder, lease.fence, expires=0, trace=trace)
        try:
            row = self.home.ledger.job(lease.job)
            params = self.params(row)
        except RushesError:  # others may have it at once, not when a lease that nobody holds is over
            with suppress(RushesError):
                self.give_back(_fresh(signer, token))
            raise
        if params is None:  # nobody can do this job
            failure = Failure("DamagedBlob", "its parameters are missing", "Enqueue it again.", NeverWorks.verdict)
            self._settle(token, self.home.ledger.fail(holder, lease.task, lease.fence, failure, None))
            return None
        with span("job.dequeue", trace, job=lease.job, queue=queue, attempt=lease.fence) if trace else nullcontext():
            PROCESS.add("rushes_jobs_dequeued_total", queue=queue)
        return QueuedJob(row, params, lease.fence, _fresh(signer, token), trace)

    def _read(self, token: str, queue: str = "", job: str = "") -> TaskToken:
        read = self._keys.signer().read(token, self.home.owner, queue, job)
        if not read.queue:
            raise ForeignToken("this task token belongs to a task of footage")
        return read

    def _settle(self, read: TaskToken, verdict: Verdict, *, counts: bool = True) -> Job:
        if verdict is not Verdict.OK:
            raise _stale(read)
        self._leave(read)
        job = self.home.ledger.job(read.job)
        if counts and job.state in FINAL:
            PROCESS.add("rushes_jobs_completed_total", queue=read.queue, state=job.state.value)
        return job

    def _leave(self, read: TaskToken) -> None:
        try:
            self.home.ledger.control(read.receipt, JobCommand.LEAVE)
        except NotFound:  # it left before
            return


class _Row:
    """The row in the ledger of whoever takes a job: kept while it waits, and written only when it is due."""

    def __init__(self, home: Home, lease_seconds: int, clock: Callable[[], float]) -> None:
        self._home, self._seconds, self._clock = home, lease_seconds, clock
        self._id, self._written = "", 0.0

    def claim(self, lane: str) -> tuple[Lease, ...]:
        """A job of a lane, for a whole lease from now on."""
        if not self._id or self._clock() - self._written > self._seconds / 2:
            self._renew({})
        try:
            leases = self._home.ledger.claim(self._id, [lane], 1)
        except LeaseLost:  # somebody ended it
            self._id = ""
            return self.claim(lane)
        is_old = self._clock() - self._written > FRESH_SECONDS
        return tuple(one for one in leases if not is_old or self._renew({one.task: one.fence}))

    def hand_over(self) -> str:
        """Its id: it belongs to the job that was taken, and ends by itself; the next claim has another."""
        id, self._id = self._id, ""
        return id

    def leave(self) -> None:
        """It holds nothing."""
        if self._id:
            self._home.ledger.control(self._id, JobCommand.LEAVE)

    def _renew(self, held: Mapping[str, int]) -> bool:
        """From now on; whether it holds what it held."""
        self._id = self._id or f"remote.{secrets.token_hex(8)}"
        renewed = self._home.ledger.renew(_holder(self._id, self._home.owner, self._seconds), held, {})
        self._written = self._clock()
        if renewed.gone and not held:
            self._id = ""
            return self._renew(held)
        return all(status is LeaseStatus.KEEP for status in renewed.leases.values())


def params_of(job: Job) -> bytes:
    """The parameters of a job in a queue of one's own that stand in the ledger; b"" if they are stored elsewhere."""
    return base64.b64decode(JobSpec.from_text(job.payload).options[STAGE].get("params", ""))


def params_size(job: Job) -> int:
    """How many bytes they have, wherever they are."""
    return int(JobSpec.from_text(job.payload).options[STAGE].get("stored", len(params_of(job))))


def _spec(owner: str) -> str:
    empty: dict[str, JSON] = {"results": {}, "inputs": {}, "needs": [], "span": None, "options": {}, "models": {}}
    return canonical({**empty, "owner": owner}).decode("ascii")


def _holder(id: str, owner: str, lease_seconds: int) -> Incarnation:
    """Who holds a lease from elsewhere: no process of any machine of ours."""
    return Incarnation(id, "remote", "", 0, "", (), 0, "remote", version(), owner, lease_seconds=float(lease_seconds))


def _fresh(signer: TokenSigner, token: TaskToken) -> str:
    """A token, signed, that is good from now on."""
    return signer.sign(replace(token, expires=int(signer.clock()) + TOKEN_SECONDS))


def _stale(read: TaskToken) -> StaleToken:
    return StaleToken(f"the lease of {read.task} at attempt {read.fence} has ended")
