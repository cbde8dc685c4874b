"""A file that was moved before it was read: its job at the old place is over, that at the new one goes on."""

import contextlib

from rushes.domain.errors import NotFound, Refused
from rushes.domain.job import Command, Job, JobState
from rushes.domain.keys import job_id
from rushes.domain.task import TaskState
from rushes.jobs.submit import request_of
from rushes.ledger.pages import all_tasks
from rushes.library.desk import Desk
from rushes.library.failed import Letters
from rushes.plan.planner import Asked
from rushes.telemetry import log
from rushes.wiring import House


def follow(house: House, before: Asked, job: Job) -> None:
    """What was asked of the file where it lay is done by this job now; what has been read needs no file any more."""
    with contextlib.suppress(NotFound):
        old = house.ledger.job(job_id(before.owner, request_of(before, house.cards)))
        if not old.facts and old.id != job.id:
            _end(house, old)
            log.warning("%s was moved before it was read: job %s ends, %s goes on", old.name, old.id, job.id)
    if job.state is JobState.CANCELLED:  # it was moved back
        Desk(house).announce(house.ledger.revive(job.id))


def _end(house: House, job: Job) -> None:
    """Cancel it; one that has looked for its file in vain already is no dead letter any more."""
    try:
        house.ledger.control(job.id, Command.CANCEL)
    except Refused:
        dead = all_tasks(house.ledger, job.id, TaskState.DEAD)
        missing = [task for task in dead if task.failure and task.failure.kind == "SourceMissing"]
        Letters(house.ledger, house.records, house.settings.owner).put_away(missing)
