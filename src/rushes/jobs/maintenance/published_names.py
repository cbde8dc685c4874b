"""Published names of finished jobs: finds missing ones, and publishes them again without recomputing."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from rushes.blobs.manifests import read_manifest
from rushes.blobs.port import Blobs
from rushes.blobs.published import Names, holds, missing_names, publish_names, wrong_names
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import Job
from rushes.domain.keys import task_id
from rushes.domain.result import Manifest
from rushes.domain.stage import Scope
from rushes.domain.task import TaskState
from rushes.home import Home
from rushes.ledger.pages import all_tasks, known_in_pages
from rushes.plan.job_names import CHUNKS, WHOLE
from rushes.plan.planner import JobSpec, results_of


def find_missing_names(home: Home, jobs: Iterable[Job]) -> dict[str, tuple[str, str]]:
    """Names of whole films that are missing, and the (job, result) that has each; the first job with a name counts.

    Cheap, for many jobs: results whose manifests are damaged are passed over, `verify` tells of them.
    """
    found: dict[str, tuple[str, str]] = {}
    for job in jobs:
        for manifest in _publishing(home, job):
            for name in missing_names(home.blobs, home.job_names(job.id, manifest)):
                found.setdefault(name, (job.id, manifest.key))
    return found


def restore_names(home: Home, jobs: Iterable[Job]) -> int:
    """Make missing names of these jobs again where their files are there; answers how many."""
    missing = find_missing_names(home, jobs)
    again = {*missing.values()}
    made = {one for one in again if publish_again(home.blobs, home.owner, *one, home.job_names)}
    return sum(one in made for one in missing.values())


def publish_again(blobs: Blobs, owner: str, job: str, key: str, names: Names) -> bool:
    """Make the names of a result again; False if its files are not there."""
    try:
        publish_names(blobs, owner, names(job, read_manifest(blobs, owner, key)))
    except DamagedBlob:
        return False
    return True


def still_wrong(home: Home, job: str, key: str) -> bool:
    """Whether a name of a result is missing or holds other bytes."""
    manifest = read_manifest(home.blobs, home.owner, key)
    return bool(wrong_names(home.blobs, home.owner, home.job_names(job, manifest)))


def delete_path_names(home: Home, job: Job) -> None:
    """Delete the names by path of a job's texts, unless another film has them by now."""
    spec = JobSpec.from_text(job.payload)
    done = [t for stage in (CHUNKS, WHOLE) for t in all_tasks(home.ledger, job.id, TaskState.DONE, stage)]
    keys = {key: task.chunk for task in done for key in results_of(task.spec).values()}
    for row in known_in_pages(home.ledger, job.owner, [*keys]).values():
        name = home.job_names.path_name(spec, keys[row.key])
        if row.text_sha256 and holds(home.blobs, name, row.text_sha256):
            home.blobs.delete(name)


def _publishing(home: Home, job: Job) -> Iterator[Manifest]:
    whole = [task_id(job.id, stage, None) for stage, spec in home.specs.items() if spec.scope is Scope.VIDEO]
    tasks = [task for task in home.ledger.tasks(ids=whole).rows if task.state is TaskState.DONE]
    keys = [key for task in tasks for key in results_of(task.spec).values()]
    for row in home.ledger.known(job.owner, keys).values() if keys else ():
        if row.publishes:
            with suppress(DamagedBlob):
                yield read_manifest(home.blobs, job.owner, row.key)
