"""The jobs of a home: looking them up, their tasks and history, why they wait, and steering them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rushes.domain.errors import NotFound, Refused
from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, TRIAL, Job, JobCommand, JobState
from rushes.domain.keys import is_id, parse_task_id
from rushes.domain.task import Task, TaskState
from rushes.domain.text import clean_text
from rushes.domain.worker import NOW, Worker
from rushes.home import Home, machine
from rushes.index.port import Video
from rushes.jobs import control
from rushes.lazy import offer
from rushes.ledger.pages import all_tasks, every
from rushes.ledger.port import Page
from rushes.library.created_range import ANY_TIME, CreatedRange
from rushes.library.names import pick_one

if TYPE_CHECKING:
    from rushes.estimates.learnt import LearntModels
    from rushes.jobs.dead_letters import Cause, DeadLetters, FailureFilter, FailureGroup
    from rushes.jobs.progress import JobProgress, JobWatcher, StageProgress, busy_seconds
    from rushes.jobs.stage_rates import StageRates
    from rushes.jobs.steps import Step, join_steps
    from rushes.jobs.why import Reason, WaitReason

__all__ = ["Cause", "FailureFilter", "FailureGroup", "JobProgress", "JobWatcher", "Page", "Reason", "StageProgress",
           "StageRates", "Step", "WaitReason", "busy_seconds", "join_steps"]  # fmt: skip
__getattr__ = offer(__name__, {
    "Cause": "rushes.jobs.dead_letters",
    "FailureFilter": "rushes.jobs.dead_letters",
    "FailureGroup": "rushes.jobs.dead_letters",
    "JobProgress": "rushes.jobs.progress",
    "JobWatcher": "rushes.jobs.progress",
    "StageProgress": "rushes.jobs.progress",
    "busy_seconds": "rushes.jobs.progress",
    "StageRates": "rushes.jobs.stage_rates",
    "Step": "rushes.jobs.steps",
    "join_steps": "rushes.jobs.steps",
    "Reason": "rushes.jobs.why",
    "WaitReason": "rushes.jobs.why",
})  # fmt: skip
_TASK_ID = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,99})\.([a-z][a-z0-9_]{0,39})(\.\d{5,7})?\Z", re.ASCII)
_IN_PROGRESS = (JobState.CREATED, JobState.CHUNKING, JobState.RUNNING)
_OPEN = (JobState.CREATED, JobState.CHUNKING, JobState.RUNNING, JobState.FAILED)


def video_of(job: Job) -> str:
    """The id of a job's video, "" until probe has found it."""
    return str(json.loads(job.facts).get("video", "")) if job.facts else ""


def profile_of(job: Job) -> str:
    """The profile that a job was asked for."""
    return str(json.loads(job.payload).get("profile", ""))


def models_of(job: Job) -> Mapping[str, str]:
    """The models that answer for a job, with their hashes, by capability."""
    return dict(json.loads(job.payload).get("models", {}))


def chunks_of(job: Job) -> int | None:
    """In how many chunks the film of a job is cut, None until probe has found it."""
    return json.loads(job.facts).get("chunks") if job.facts else None


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of one owner; those of others do not exist here. Ids are exact, but for `find`."""

    home: Home
    learnt: LearntModels | None = None  # what all estimates of a process share

    @property
    def queues(self) -> tuple[str, ...]:
        """Where jobs are put: the lanes of the first tasks of videos and clips, and queues of one's own."""
        return (*self.home.every_lane, *NOW, *self.home.queues)

    def page(
        self,
        state: JobState | None = None,
        cursor: str = "",
        limit: int = 100,
        queue: str = "",
        created: CreatedRange = ANY_TIME,
    ) -> Page[Job]:
        """Jobs, newest first, without the trials that estimates make; of one queue, or all; created in a range.

        Raises:
            Refused: there is no such queue.
        """
        if queue and queue not in self.queues:
            raise Refused(f"unknown queue {queue[:60]!r}", f"Choose from: {', '.join(self.queues)}")
        owner, ledger = self.home.owner, self.home.ledger
        by_creation = bool(queue) or state not in FINAL
        page = created.page(
            lambda at, n: ledger.jobs(owner, state, cursor=at, limit=n, queue=queue),
            cursor,
            limit,
            by_creation=by_creation,
        )
        return Page(tuple(job for job in page.rows if job.recipe != TRIAL), page.cursor)

    def all_page(self, cursor: str = "", limit: int = 100) -> Page[Job]:
        """Jobs in progress, the newest first; after them all others, the last to finish first."""
        part, _, inner = cursor.partition(":")
        found: tuple[Job, ...] = ()
        if part in ("", "going"):
            going = self.page_of(_IN_PROGRESS, inner, limit)
            found, inner = going.rows, ""
            if going.cursor or len(found) >= limit:
                return Page(found, f"going:{going.cursor}" if going.cursor else "over:")
        over = self.page_of(tuple(FINAL), inner, limit - len(found))
        return Page((*found, *over.rows), f"over:{over.cursor}" if over.cursor else "")

    def page_of(self, states: Sequence[JobState], cursor: str, limit: int) -> Page[Job]:
        """Jobs of several states in one order, the latest to begin (or to end) first."""
        after: dict[str, str] = json.loads(cursor) if cursor else dict.fromkeys(states, "")
        pages = {state: self._jobs_of(state, at, limit) for state, at in after.items()}
        rows = sorted((j for p in pages.values() for j in p.rows), key=lambda j: j.finished_at or j.created_at)
        taken = {job.id: job for job in rows[::-1][:limit]}
        left: dict[str, str] = {}
        for state, page in pages.items():
            count = sum(job.id in taken for job in page.rows)
            if count < len(page.rows):
                left[state] = self._jobs_of(state, after[state], count).cursor if count else after[state]
            elif page.cursor:
                left[state] = page.cursor
        shown = tuple(job for job in taken.values() if job.recipe != TRIAL)
        return Page(shown, json.dumps(left) if left else "")

    def _jobs_of(self, state: str, cursor: str, limit: int) -> Page[Job]:
        return self.home.ledger.jobs(self.home.owner, JobState(state), cursor=cursor, limit=limit)

    def get(self, id: str) -> Job:
        """One job by its exact id.

        Raises:
            NotFound: this owner has none of that id.
        """
        try:
            job = self.home.ledger.job(id) if is_id(id) else None
        except NotFound:
            job = None
        if job is None or job.owner != self.home.owner:
            raise NotFound(f"no job {id[:60]!r}", what="job")
        return job

    def place_of(self, job: Job) -> str:
        """Where its film was when it was taken in, as a whole path or address; its name if nobody said where."""
        return clean_text(self.home.place_of(json.loads(job.payload).get("source", {}).get("path", ""))) or job.name

    def get_many(self, ids: Collection[str]) -> dict[str, Job]:
        """Those of these jobs that are there, by id; one question, however many are named."""
        return {job.id: job for job in self.home.ledger.jobs(self.home.owner, ids=ids).rows} if ids else {}

    def find(self, name: str) -> Job:
        """One job by its id or the beginning of it.

        Raises:
            NotFound: none, or more than one.
        """
        jobs = every(lambda cursor: self.page(cursor=cursor, limit=500))
        return pick_one(name, [j for j in jobs if j.id.startswith(name) or j.id == f"job_{name}"], "job")

    def of_video(self, video: Video, most: int) -> list[Job]:
        """The newest jobs of a video, by one question."""
        found = self.get_many(video.jobs[:most])
        return [found[id] for id in video.jobs[:most] if id in found]

    def counts(self, most: int) -> dict[str, int]:
        """How many jobs are in each state that is not over, counted up to that many."""
        return {s.value: len(self.home.ledger.jobs(self.home.owner, s, limit=most).rows) for s in _OPEN}

    def open_count(self, most: int = 100) -> int:
        """How many jobs are in progress: waiting, running or paused; counted up to that many of each state."""
        return sum(count for state, count in self.counts(most).items() if state != JobState.FAILED)

    def changed(self, cursor: str = "") -> tuple[tuple[Job, ...], str]:
        """Jobs with new events since the cursor, as they are now, and the next cursor (the same one at the end)."""
        ids, after = self.home.ledger.changed(cursor)
        rows = self.home.ledger.jobs(self.home.owner, ids=set(ids)).rows if ids else ()
        found = {row.id: row for row in rows}  # one may be forgotten since
        return tuple(found[id] for id in dict.fromkeys(ids) if id in found), after

    def skip_changes(self, cursor: str = "") -> tuple[bool, str]:
        """Pass over one page of changes without reading the jobs: whether there may be more, and the next cursor."""
        ids, after = self.home.ledger.changed(cursor)
        return bool(ids) and after != cursor, after

    # Tasks and history
    def task(self, id: str) -> Task:
        """One task.

        Raises:
            NotFound: this owner has none of that id.
        """
        named = _TASK_ID.match(id)
        found = self.home.ledger.tasks(ids=[id], limit=1).rows if named and self.get(named[1]) else ()
        if not found:
            raise NotFound(f"no task {id[:60]!r}", what="task")
        return found[0]

    def tasks(self, job: str, state: TaskState | None = None) -> tuple[Task, ...]:
        """All tasks of a job in plan order."""
        return all_tasks(self.home.ledger, self.get(job).id, state)

    def task_page(self, job: str, state: TaskState | None, stage: str, cursor: str, limit: int) -> Page[Task]:
        """Some tasks of a job in plan order."""
        return self.home.ledger.tasks(self.get(job).id, state, stage, cursor=cursor, limit=limit)

    def get_tasks(self, ids: Sequence[str]) -> dict[str, Task]:
        """Those of these tasks that are there, by id; one question, however many are named."""
        return {t.id: t for t in self.home.ledger.tasks(ids=ids, limit=len(ids)).rows} if ids else {}

    def steps(self, job: str) -> tuple[Step, ...]:
        """The steps of a job in plan order."""
        from rushes.jobs.steps import steps_of

        return steps_of(self.home, self.get(job))

    def step(self, id: str) -> Step:
        """One step, by `job.stage`.

        Raises:
            NotFound: there is none.
        """
        from rushes.jobs.steps import steps_of

        named = _TASK_ID.match(id)
        found = steps_of(self.home, self.get(named[1]), named[2]) if named and not named[3] else ()
        if not found:
            raise NotFound(f"no step {id[:60]!r}", what="step")
        return found[0]

    def events(
        self, job: str, after: int = 0, limit: int = 500, types: Collection[EventType] = (), since: str = ""
    ) -> tuple[Event, ...]:
        """Numbered events of a job after a number; of some types, or from a time on (as events say it)."""
        row, found = self.get(job), list[Event]()
        while len(found) < limit and (page := self.home.ledger.events(row.id, after, types, limit=limit)):
            found += [event for event in page if event.at >= since]
            after = page[-1].number
            if len(page) < limit:
                break
        return tuple(found[:limit])

    def follow(self, job: str, after: int = 0, pause: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """A job's events after a number; with `pause`, live until the job is final."""
        from rushes.jobs.progress import follow

        return follow(self.home.ledger, self.get(job).id, after, pause)

    def log(self, task: str, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        """Log lines of a task's last attempt after a number."""
        row = self.task(task)
        return self.home.ledger.events(row.job, after, types={EventType.LOG}, task=row.id, limit=limit)

    def why(self, job: str) -> tuple[WaitReason, ...]:
        """Why each task of a job that is not running does not run."""
        from rushes.jobs.needed_models import explain_missing_models
        from rushes.jobs.why import why

        row = self.get(job)
        return explain_missing_models(self.home, row, why(self.home.ledger, row))

    def watch(self, job: str) -> JobWatcher:
        """Look at a job again and again: it reads the plan once, and afterwards only what is new."""
        from rushes.estimates.time_left import LearntTimes
        from rushes.jobs.progress import JobWatcher

        return JobWatcher(self.home.ledger, self.get(job).id, LearntTimes(self.home, machine(), learnt=self.learnt))

    def expected(self, job: Job) -> tuple[float, float] | None:
        """The estimate of a planned job: seconds that nine of ten runs stay between; None if a stage is unknown."""
        from rushes.estimates.estimate import job_estimate

        return job_estimate(self.home, job, machine(), self.learnt)

    def stage_rates(self) -> tuple[StageRates, ...]:
        """How often each stage failed and was tried again in the newest jobs, most failures first."""
        from rushes.jobs.stage_rates import stage_rates

        return stage_rates(self.home)

    # Steering
    def command(self, job: str, command: JobCommand, value: int = 0) -> Job:
        """Pause, resume, cancel or reorder a job.

        Raises:
            Refused: it is finished.
        """
        return control.command(self.home, self.get(job).id, command, value)

    def pause(self, job: str, *, now: bool = False) -> Job:
        """Start nothing new of it; running chunks finish and commit, or with `now` are given back."""
        return self.command(job, JobCommand.PAUSE_NOW if now else JobCommand.PAUSE)

    def resume(self, job: str) -> Job:
        """Continue after a pause."""
        return self.command(job, JobCommand.RESUME)

    def cancel(self, job: str) -> Job:
        """Nothing of it commits from now on; what is done stays."""
        return self.command(job, JobCommand.CANCEL)

    def retry(self, job: str, stage: str = "") -> tuple[str, ...]:
        """Try dead tasks again, of one stage or all; a cancelled job continues."""
        return control.retry(self.home, self.get(job).id, stages=[stage] if stage else ())

    def cancel_step(self, step: Step) -> None:
        """Stop a step and what needs it; the others go on."""
        from rushes.jobs.steps import cancel_step

        cancel_step(self.home, self.get(step.job), step.stage)

    def retry_step(self, step: Step) -> None:
        """Try a step again, with what needs it; the others stay as they are."""
        from rushes.jobs.steps import retry_step

        retry_step(self.home, self.get(step.job), step.stage)

    def announce(self, job: str) -> None:
        """Send hints for the ready tasks of a job again."""
        control.announce_ready(self.home, self.get(job).id)

    @property
    def failed(self) -> DeadLetters:
        """Tasks that are not tried again until somebody acts."""
        from rushes.jobs.dead_letters import DeadLetters

        return DeadLetters(self.home)

    # Workers
    def workers(self) -> tuple[Worker, ...]:
        """Every worker, with what it holds; and who holds jobs of queues of one's own."""
        return self.home.ledger.workers()

    def seen_workers(self) -> list[Worker]:
        """Every worker, with what it holds of this owner's; what it does for others is nobody's business."""
        workers = [worker for worker in self.workers() if worker.takes_tasks]
        jobs = self.get_many({parse_task_id(task)[0] for worker in workers for task in worker.held})
        own = {w.incarnation.id: tuple(t for t in w.held if parse_task_id(t)[0] in jobs) for w in workers}
        return [replace(worker, held=own[worker.incarnation.id]) for worker in workers]

    def drain(self, worker: str) -> None:
        """Tell a worker to claim nothing more and to hand back what it holds.

        Raises:
            NotFound: there is no such worker.
            NotAllowed: another owner started it.
        """
        control.drain(self.home, worker)
