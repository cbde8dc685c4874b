"""JobService: jobs in queues of one's own."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rushes.domain.errors import Refused
from rushes.domain.job import Job, JobState
from rushes.library import Library
from rushes.library.access.signing import Signer
from rushes.library.created_range import CreatedRange, utc_millis
from rushes.library.job_events import millis
from rushes.library.queues import DEFAULT_LEASE, MOST, QueuedJob, params_of, params_size
from rushes.remote.generated import jobs_pb2 as pb

LONGEST_WAIT = 20  # seconds
ANSWER_SECONDS = 1.0  # kept of a caller's deadline: a job that is leased too late for its answer would be lost to it
ROWS, MOST_ROWS = 50, 100
STATES = {
    JobState.CREATED: pb.JOB_STATE_PENDING,
    JobState.CHUNKING: pb.JOB_STATE_RUNNING,
    JobState.RUNNING: pb.JOB_STATE_RUNNING,
    JobState.COMPLETED: pb.JOB_STATE_COMPLETED,
    JobState.FAILED: pb.JOB_STATE_FAILED,
    JobState.CANCELLED: pb.JOB_STATE_CANCELLED,
}
WANTED: dict[int, JobState] = {STATES[state]: state for state in STATES if state is not JobState.RUNNING}


class JobsApi:
    """The methods of JobService."""

    def __init__(self, library: Library) -> None:
        self._queues, self._signer = library.queues, Signer.of(library.home)

    def enqueue(self, request: pb.EnqueueRequest, _context: Any) -> pb.EnqueueResponse:
        """A job; the same request id again answers the job there is."""
        if not -1000 <= request.priority <= 1000:
            raise Refused("a priority is from -1000 to 1000")
        job = self._queues.enqueue(request.queue, request.request_id, request.params, request.priority)
        return pb.EnqueueResponse(job_id=job.id, created_at=millis(job.created_at), state=STATES[job.state])

    def dequeue(self, request: pb.DequeueRequest, context: Any) -> Iterator[pb.DequeueResponse]:
        """Jobs with their tokens, as they are leased."""
        wait = min(max(0, request.wait_seconds), LONGEST_WAIT, _time_left(context))
        lease = request.visibility_timeout_seconds or DEFAULT_LEASE
        most = min(request.max_jobs or 1, MOST)
        for taken in self._queues.dequeue(request.queue, most, lease, wait, context.is_active):
            yield pb.DequeueResponse(
                job=_taken(taken), task_token=taken.token, attempt=taken.attempt, traceparent=taken.trace
            )

    def update_visibility(self, request: pb.UpdateVisibilityRequest, _context: Any) -> pb.UpdateVisibilityResponse:
        """Another lease from now on, and a fresh token."""
        token = self._queues.extend(request.task_token, request.visibility_timeout_seconds, request.queue)
        return pb.UpdateVisibilityResponse(task_token=token)

    def complete(self, request: pb.CompleteRequest, _context: Any) -> pb.CompleteResponse:
        """Done."""
        if not request.job_id:
            raise Refused("job_id is required")
        job = self._queues.complete(request.task_token, request.job_id, request.result)
        return pb.CompleteResponse(state=STATES[job.state])

    def fail(self, request: pb.FailRequest, _context: Any) -> pb.FailResponse:
        """The attempt failed."""
        job = self._queues.fail(request.task_token, request.message, retry=not request.permanent)
        return pb.FailResponse(state=STATES[job.state])

    def give_back(self, request: pb.GiveBackRequest, _context: Any) -> pb.GiveBackResponse:
        """Free it at once."""
        self._queues.give_back(request.task_token)
        return pb.GiveBackResponse()

    def get(self, request: pb.GetRequest, _context: Any) -> pb.GetResponse:
        """One job, and what it made."""
        job, made = self._queues.job(request.job_id), self._queues.result(request.job_id)
        return pb.GetResponse(job=_job(job), result=made.data, result_url=made.address, result_size=made.size)

    def list(self, request: pb.ListRequest, _context: Any) -> pb.ListResponse:
        """Jobs of a queue, or of all, newest first, by cursor or by page."""
        size = min(max(0, request.page_size) or ROWS, MOST_ROWS)
        state = _state(request.state)
        created = CreatedRange(_iso(request.created_from), _iso(request.created_to))
        of = f"queue {request.queue} {request.state} {request.created_from} {request.created_to}"
        page = self._queues.page(request.queue, state, created, self._signer.unseal(request.cursor, of), size)
        for _ in (None,) * (min(request.page, 1000) - 1 if not request.cursor else 0):
            more = page.cursor
            page = self._queues.page(request.queue, state, created, more, size) if more else type(page)(())
        cursor = self._signer.seal(page.cursor, of)
        return pb.ListResponse(jobs=map(_job, page.rows), cursor=cursor, last_page=not cursor)


def _state(number: int) -> JobState | None:
    if number and number not in WANTED:
        raise Refused(f"unknown state: {number}")
    return WANTED.get(number)


def _time_left(context: Any) -> float:
    """Seconds that a call may wait so that its answer comes before its deadline."""
    left = context.time_remaining()
    return float("inf") if left is None else max(0.0, left - ANSWER_SECONDS)


def _taken(taken: QueuedJob) -> pb.Job:
    """The job with its parameters, wherever they are; RUNNING, though the ledger may show it later."""
    job, params = _job(taken.row), taken.params
    job.state = pb.JOB_STATE_RUNNING
    job.params, job.params_url, job.params_size = params.data, params.address, params.size
    return job


def _job(job: Job) -> pb.Job:
    return pb.Job(
        job_id=job.id, queue=job.queue, state=STATES[job.state], params=params_of(job),
        params_size=params_size(job), request_id=job.name,
        created_at=millis(job.created_at), updated_at=millis(job.finished_at or job.started_at or job.created_at),
    )  # fmt: skip


def _iso(millis: int) -> str:
    try:
        return utc_millis(datetime.fromtimestamp(millis / 1000, UTC)) if millis > 0 else ""
    except (ValueError, OverflowError, OSError) as e:
        raise Refused(f"{millis} is not a time in milliseconds since 1970") from e
