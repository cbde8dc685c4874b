"""A file that was moved before it was read: its job at the old place is over, that at the new one goes on."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rushes.domain.errors import NotFound, Refused
from rushes.domain.job import Job, JobCommand, JobState
from rushes.domain.keys import job_id
from rushes.domain.task import TaskState
from rushes.domain.video import Fingerprint
from rushes.home import Home
from rushes.jobs import control
from rushes.jobs.dead_letters import DeadLetters
from rushes.jobs.submit import request_id_of
from rushes.ledger.pages import all_tasks, every
from rushes.plan.planner import JobSpec
from rushes.sources.watch import without_path
from rushes.telemetry import log

_UNREAD = (JobState.CREATED, JobState.CHUNKING, JobState.FAILED)


def find_moved_unread(home: Home) -> dict[Fingerprint, Fingerprint]:
    """Files that jobs have not read and that are not where they were, by what stays the same when a file is moved."""
    jobs = (job for state in _UNREAD for job in _all(home, state) if not job.facts)
    files = (JobSpec.from_text(job.payload).source for job in jobs)
    top = Path(os.path.realpath(home.originals))
    placed = (replace(file, path=str(top / file.path)) for file in files if not file.far)
    return {without_path(file): file for file in placed if not os.path.lexists(file.path)}


def hand_over(home: Home, before: JobSpec, job: Job) -> None:
    """What was asked of the file where it lay is done by this job now; what has been read needs no file any more."""
    with contextlib.suppress(NotFound):
        old = home.ledger.job(job_id(before.owner, request_id_of(before, home.specs)))
        if not old.facts and old.id != job.id and not os.path.lexists(home.originals / before.source.path):
            _end(home, old)
            log.warning("%s was moved before it was read: job %s ends, job %s continues", old.name, old.id, job.id)
    if job.state is JobState.CANCELLED:  # it was moved back
        control.retry(home, job.id)


def _all(home: Home, state: JobState) -> Iterator[Job]:
    return every(lambda cursor: home.ledger.jobs(home.owner, state, cursor=cursor, limit=500))


def _end(home: Home, job: Job) -> None:
    """Cancel it; one that has looked for its file in vain already is no dead letter any more."""
    try:
        home.ledger.control(job.id, JobCommand.CANCEL)
    except Refused:
        dead = all_tasks(home.ledger, job.id, TaskState.DEAD)
        missing = [task for task in dead if task.failure and task.failure.kind == "SourceMissing"]
        DeadLetters(home).dismiss_tasks(missing)
