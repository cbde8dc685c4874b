"""Verify: done implies that the files exist and their hashes match; what may not go is missing if it has no row."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import Job, JobState
from rushes.domain.keys import manifest_key
from rushes.domain.stage import StageSpec
from rushes.domain.task import Task, TaskState
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import inputs_of, results_of

_COMING = (TaskState.WAITING, TaskState.READY, TaskState.LEASED)


@dataclass(frozen=True, slots=True)
class Damage:
    """A result that is not what the ledger says, and the task that can make it again."""

    job: str
    task: str
    key: str
    output: str
    what: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was looked at and what was found."""

    results: int
    files: int
    size: int
    damages: tuple[Damage, ...]


def verify(
    ledger: Ledger, blobs: Blobs, owner: str, on_progress: Callable[[int, str], None] = lambda _n, _name: None
) -> VerifyReport:
    """Read every file of every result that the ledger knows, each once.

    A damage is told of the newest job that can make it again: rather not a paused one, never a cancelled one
    if there is another.
    """
    seen: dict[str, Damage | None] = {}
    rank: dict[str, int] = {}
    files: dict[str, int] = {}
    for job in all_jobs(ledger, owner):
        fit = 0 if job.state is JobState.CANCELLED else 1 if job.paused else 2
        for task, keys in _done(ledger, job):
            known = ledger.known(owner, keys.values())
            for output, key in keys.items():
                if key not in known:
                    continue
                if key not in seen:
                    on_progress(len(seen), job.name)
                    what = _look(blobs, owner, key, known[key].manifest_sha256, files)
                    seen[key] = Damage(job.id, task, key, output, what) if what else None
                    rank[key] = fit
                elif (damage := seen[key]) is not None and fit >= rank[key]:
                    seen[key] = Damage(job.id, task, key, output, damage.what)
                    rank[key] = fit
    damages = tuple(d for d in seen.values() if d)
    return VerifyReport(len(seen), len(files), sum(files.values()), damages)


def _done(ledger: Ledger, job: Job) -> Iterator[tuple[str, dict[str, str]]]:
    for task in all_tasks(ledger, job.id, TaskState.DONE):
        yield task.id, results_of(task.spec)


def _look(blobs: Blobs, owner: str, key: str, sha256: str, files: dict[str, int]) -> str:
    """What is wrong with a result, "" if nothing is; its sound files are added to `files`."""
    try:
        data = read_document(blobs, manifest_key(owner, key))
        if data is None:
            return "the manifest is missing"
        if hashlib.sha256(data).hexdigest() != sha256:
            return "the manifest is not the one that was committed"
        manifest = parse_manifest(data, key)
    except DamagedBlob:
        return "the manifest is damaged"
    bad = {a.sha256 for a in manifest.artifacts if a.sha256 not in files and not blobs.verify(owner, a.sha256)}
    files |= {a.sha256: a.size for a in manifest.artifacts if a.sha256 not in bad}
    names = [a.name for a in manifest.artifacts if a.sha256 in bad]
    return f"missing or damaged: {', '.join(names)}" if bad else ""


def find_missing(
    ledger: Ledger, owner: str, specs: Mapping[str, StageSpec], gone: Collection[str]
) -> tuple[Damage, ...]:
    """Results without a row that a job must have and nobody is making, each told of the newest such job.

    What may go some day is missing only if work that is not done yet reads it; jobs that were deleted miss nothing.
    """
    must: dict[str, Damage] = {}
    coming: set[str] = set()
    for job in all_jobs(ledger, owner):
        if job.id in gone or job.state is JobState.CANCELLED:
            continue
        tasks = all_tasks(ledger, job.id)
        coming |= {key for t in tasks if t.state in _COMING for key in results_of(t.spec).values()}
        must |= {damage.key: damage for damage in _held(job, tasks, specs)}
    keys = [key for key in must if key not in coming]
    return tuple(must[key] for key in sorted(set(keys) - ledger.known(owner, keys).keys()))


def _held(job: Job, tasks: tuple[Task, ...], specs: Mapping[str, StageSpec]) -> Iterator[Damage]:
    read = {key for task in tasks if task.state is not TaskState.DONE for key in inputs_of(task.spec)}
    for task in tasks:
        spec = specs.get(task.stage)
        may_go = (*spec.intermediate, *spec.expiring) if spec else ()
        for output, key in results_of(task.spec).items() if task.state is TaskState.DONE else ():
            if key in read or output not in may_go:
                yield Damage(job.id, task.id, key, output, "it is not there any more")
