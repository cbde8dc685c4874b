"""Taking in: a job with its first task, in one small transaction; the same request twice is one job."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rushes.domain.job import NewJob
from rushes.domain.keys import JSON, digest, job_id
from rushes.domain.stage import StageSpec
from rushes.domain.task import Draft, Need
from rushes.ledger.port import Ledger, Submitted
from rushes.plan.planner import JobSpec, clip_task, first_task
from rushes.transport.port import Transport


def request_id_of(job_spec: JobSpec, specs: Mapping[str, StageSpec]) -> str:
    """The request id: everything that decides the work, so that a new version of a stage is a new request."""
    doc: dict[str, JSON] = asdict(job_spec)
    doc["versions"] = {name: specs[name].version for name in job_spec.stages}
    return digest(doc)


def submit(
    ledger: Ledger,
    transport: Transport,
    specs: Mapping[str, StageSpec],
    job_spec: JobSpec,
    name: str,
    recipe: str,
    priority: int = 0,
    needs: Sequence[Need] = (),
    request: str = "",
) -> Submitted:
    """Submit one video through one recipe; a `request` of its own is for a file whose name comes from its job."""
    request = request or request_id_of(job_spec, specs)
    job = job_id(job_spec.owner, request)
    first = first_task(job, job_spec, specs["probe"], needs)
    return _send(ledger, transport, _new(job, job_spec, request, name, recipe, priority), first)


def submit_clip(
    ledger: Ledger,
    transport: Transport,
    spec: StageSpec,
    job_spec: JobSpec,
    name: str,
    sha256: str,
    inputs: Mapping[str, list[str]],
) -> Submitted:
    """Submit a clip: a job of one task that jumps every queue."""
    request = digest(["clip", asdict(job_spec), spec.version, sha256])
    job = job_id(job_spec.owner, request)
    draft = clip_task(job, job_spec, spec, sha256, inputs)
    return _send(ledger, transport, _new(job, job_spec, request, name, "clip", 100), draft)


def display_name(text: str) -> str:
    """A file name that every store and screen can carry: bytes that are no text become a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _new(job: str, job_spec: JobSpec, request: str, name: str, recipe: str, priority: int) -> NewJob:
    return NewJob(job, job_spec.owner, request, display_name(name), recipe, job_spec.to_text(), priority)


def _send(ledger: Ledger, transport: Transport, new: NewJob, first: Draft) -> Submitted:
    submitted = ledger.submit(new, first)
    transport.announce(first.lane, [first.id])
    return submitted
