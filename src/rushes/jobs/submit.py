"""Submitting a job with its first task in one small transaction; a repeated request finds the same job."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from rushes.domain.job import NewJob
from rushes.domain.keys import JSON, digest, job_id
from rushes.domain.stage import StageSpec
from rushes.domain.task import Draft, Need, with_trace
from rushes.domain.text import clean_text
from rushes.home import Home
from rushes.ledger.port import Submitted
from rushes.plan.planner import JobSpec, clip_task, first_task
from rushes.tracing import current, span

CLIP = "clip"  # the recipe of a clip, and the kind of record that remembers one that was asked for


def request_id_of(job_spec: JobSpec, specs: Mapping[str, StageSpec]) -> str:
    """The request id: everything that decides the work, so that a new version of a stage is a new request."""
    doc: dict[str, JSON] = asdict(job_spec)
    doc["versions"] = {name: specs[name].version for name in job_spec.stages}
    return digest(doc)


def submit(
    home: Home, job_spec: JobSpec, request: str, name: str, recipe: str, priority: int, needs: Sequence[Need] = ()
) -> Submitted:
    """Submit one video through one recipe; of a file to come, the request is its own."""
    job = job_id(job_spec.owner, request)
    with span("job.submit", job=job, recipe=recipe):
        first = first_task(job, job_spec, home.specs["probe"], needs)
        return _send(home, first, job_spec, request, name, recipe, priority)


def submit_clip(home: Home, job_spec: JobSpec, name: str, sha256: str, inputs: Mapping[str, list[str]]) -> Submitted:
    """Submit a clip: a job of one task that jumps every queue."""
    spec = home.specs[CLIP]
    request = digest([CLIP, asdict(job_spec), spec.version, sha256])
    job = job_id(job_spec.owner, request)
    with span("job.submit", job=job, recipe=CLIP):
        task = clip_task(job, job_spec, spec, sha256, inputs)
        return _send(home, task, job_spec, request, name, CLIP, 100)


def _send(
    home: Home, first: Draft, job_spec: JobSpec, request: str, name: str, recipe: str, priority: int
) -> Submitted:
    job, owner = job_id(job_spec.owner, request), job_spec.owner
    queue = first.lane.partition("@")[0]
    new = NewJob(job, owner, request, clean_text(name), recipe, job_spec.to_text(), priority, queue=queue)
    submitted = home.ledger.submit(new, replace(first, spec=with_trace(first.spec, current())))
    home.transport.announce(first.lane, [first.id])
    return submitted
