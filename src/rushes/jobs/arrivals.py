"""Files that jobs wait for: tells the ledger when they arrive; replaced content starts a new job."""

import time
from dataclasses import replace

from rushes.domain.job import Job
from rushes.domain.task import Need
from rushes.home import Home
from rushes.jobs.control import announce
from rushes.jobs.submit import submit
from rushes.plan.planner import JobSpec

AGAIN = "@"  # between the request of a job and the ETag that it was started again with


def arrive(home: Home, key: str, etag: str) -> None:
    """A key is there with this content. Repeatable: killed in between, whoever tells it next goes on."""
    found = home.ledger.arrived(key, etag)
    announce(home, found.ready)
    for job in found.again:
        _start_again(home, home.ledger.job(job), key, etag)


def _start_again(home: Home, job: Job, key: str, etag: str) -> None:
    """A new job with the same recipe; those that began with other contents of the key all name the same one."""
    spec = JobSpec.from_text(job.payload)
    spec = replace(spec, source=replace(spec.source, mtime_ns=time.time_ns()))  # so that probe runs again
    request = f"{job.request_id.partition(AGAIN)[0]}{AGAIN}{etag}"
    submit(home, spec, request, job.name, job.recipe, job.priority, [Need(key, is_key=True)])
