"""Published names of finished jobs: which are missing, and making them again without any work on the film."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from rushes.blobs.manifests import read_manifest
from rushes.blobs.port import Blobs
from rushes.blobs.published import missing_names, publish_names, wrong_names
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import Job
from rushes.domain.keys import task_id
from rushes.domain.result import Manifest
from rushes.domain.stage import Scope
from rushes.domain.task import TaskState
from rushes.home import Home
from rushes.plan.planner import results_of


def find_missing_names(home: Home, jobs: Iterable[Job]) -> dict[str, Manifest]:
    """Names of whole films that are missing, and the result that has each; the first job with a name counts.

    Cheap, for many jobs: results whose manifests are damaged are passed over, `verify` tells of them.
    """
    found: dict[str, Manifest] = {}
    for job in jobs:
        for manifest in _publishing(home, job):
            for name in missing_names(home.blobs, manifest):
                found.setdefault(name, manifest)
    return found


def restore_names(home: Home, jobs: Iterable[Job]) -> int:
    """Make missing names of these jobs again where their files are there; answers how many."""
    missing = find_missing_names(home, jobs)
    again = {manifest.key: manifest for manifest in missing.values()}
    made = {key for key in again if publish_again(home.blobs, home.owner, key)}
    return sum(manifest.key in made for manifest in missing.values())


def publish_again(blobs: Blobs, owner: str, key: str) -> bool:
    """Make the names of a result again; False if its files are not there."""
    try:
        publish_names(blobs, owner, read_manifest(blobs, owner, key))
    except DamagedBlob:
        return False
    return True


def still_wrong(home: Home, key: str) -> bool:
    """Whether a name of a result is missing or holds other bytes."""
    return bool(wrong_names(home.blobs, home.owner, read_manifest(home.blobs, home.owner, key)))


def _publishing(home: Home, job: Job) -> Iterator[Manifest]:
    whole = [task_id(job.id, stage, None) for stage, spec in home.specs.items() if spec.scope is Scope.VIDEO]
    tasks = [task for task in home.ledger.tasks(ids=whole).rows if task.state is TaskState.DONE]
    keys = [key for task in tasks for key in results_of(task.spec).values()]
    for row in home.ledger.known(job.owner, keys).values() if keys else ():
        if row.publishes:
            with suppress(DamagedBlob):
                yield read_manifest(home.blobs, job.owner, row.key)
