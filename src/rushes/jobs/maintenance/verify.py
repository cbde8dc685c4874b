"""Verify: done implies that the files exist and their hashes match."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import Job, JobState
from rushes.domain.keys import manifest_key
from rushes.domain.task import TaskState
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import results_of


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
