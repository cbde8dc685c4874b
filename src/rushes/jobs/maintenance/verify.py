"""Verify: done implies that the files exist and their hashes match. Repair: exactly what is damaged is made again.

It is set aside first, and what others read comes before them; what may not go is missing if it has no row.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest, written
from rushes.blobs.port import Blobs
from rushes.blobs.published import wrong_names
from rushes.domain.errors import DamagedBlob
from rushes.domain.grouping import grouped
from rushes.domain.job import Job, JobState
from rushes.domain.keys import manifest_key
from rushes.domain.result import Result
from rushes.domain.stage import StageSpec
from rushes.domain.task import Task, TaskState
from rushes.jobs.maintenance.published_names import publish_again
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import inputs_of, needs_of, results_of

_COMING = (TaskState.WAITING, TaskState.READY, TaskState.LEASED)


@dataclass(frozen=True, slots=True)
class Damage:
    """A result that is not what the ledger says, and the task that can make it again."""

    job: str
    task: str
    key: str
    output: str
    what: str
    names_only: bool = False  # its files are sound, but published names are missing or hold other bytes


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was looked at and what was found."""

    results: int
    files: int
    size: int
    damages: tuple[Damage, ...]


def verify(
    ledger: Ledger,
    blobs: Blobs,
    owner: str,
    on_progress: Callable[[int, str], None] = lambda _n, _name: None,
    jobs: Iterable[Job] | None = None,
) -> VerifyReport:
    """Read every file of every result of these jobs (default: all), each once, and look at its published names.

    A damage is told of the newest job that can make it again: rather not a paused one, never a cancelled one
    if there is another.
    """
    seen: dict[str, Damage | None] = {}
    rank: dict[str, int] = {}
    files: dict[str, int] = {}
    for job in all_jobs(ledger, owner) if jobs is None else jobs:
        fit = 0 if job.state is JobState.CANCELLED else 1 if job.paused else 2
        for task, keys in _done(ledger, job):
            known = ledger.known(owner, keys.values())
            for output, key in keys.items():
                if key not in known:
                    continue
                if key not in seen:
                    on_progress(len(seen), job.name)
                    what, names_only = _look(blobs, owner, known[key], files)
                    seen[key] = Damage(job.id, task, key, output, what, names_only) if what else None
                    rank[key] = fit
                elif (damage := seen[key]) is not None and fit >= rank[key]:
                    seen[key] = replace(damage, job=job.id, task=task, output=output)
                    rank[key] = fit
    damages = tuple(d for d in seen.values() if d)
    return VerifyReport(len(seen), len(files), sum(files.values()), damages)


def _done(ledger: Ledger, job: Job) -> Iterator[tuple[str, dict[str, str]]]:
    for task in all_tasks(ledger, job.id, TaskState.DONE):
        yield task.id, results_of(task.spec)


def _look(blobs: Blobs, owner: str, row: Result, files: dict[str, int]) -> tuple[str, bool]:
    """What is wrong with a result ("": nothing), and if only with its names; its sound files are added to `files`."""
    try:
        data = read_document(blobs, manifest_key(owner, row.key))
        if data is None:
            return "the manifest is missing", False
        if hashlib.sha256(data).hexdigest() != row.manifest_sha256:
            return "the manifest is not the one that was committed", False
        manifest = parse_manifest(data, row.key)
    except DamagedBlob:
        return "the manifest is damaged", False
    bad = {a.sha256 for a in manifest.artifacts if a.sha256 not in files and not blobs.verify(owner, a.sha256)}
    files |= {a.sha256: a.size for a in manifest.artifacts if a.sha256 not in bad}
    names = [a.name for a in manifest.artifacts if a.sha256 in bad]
    if bad:
        return f"missing or damaged: {', '.join(names)}", False
    wrong = wrong_names(blobs, owner, manifest)
    return (f"published file missing or changed: {', '.join(wrong)}", True) if wrong else ("", False)


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


@dataclass(frozen=True, slots=True)
class _Plan:
    """The tasks of a job by their specs, and who makes which result."""

    specs: dict[str, str]
    makers: dict[str, str]


def repair(ledger: Ledger, blobs: Blobs, owner: str, damages: Iterable[Damage]) -> tuple[str, ...]:
    """Set damaged results aside and make their tasks ready again; answers the tasks. Repeatable.

    What they read and gc has cleared since is made again as well.
    """
    jobs = grouped(damages, lambda damage: damage.job)
    return tuple(task for job, some in jobs.items() for task in _again(ledger, blobs, owner, job, some))


def rounds(ledger: Ledger, damages: Iterable[Damage]) -> tuple[tuple[Damage, ...], ...]:
    """Damages in rounds: each reads only what is sound after the one before, or what its task waits for by itself.

    Nothing waits for probe or for the task of another job: a plan begins when these are done.
    """
    turns = _Turns(ledger, {damage.key: damage for damage in damages})
    found: dict[int, list[Damage]] = {0: []}
    for damage in turns.damages.values():
        found.setdefault(turns.of(damage.job, damage.task), []).append(damage)
    return tuple(tuple(some) for _, some in sorted(found.items()))


@dataclass(frozen=True, slots=True)
class _Turns:
    """In which round a task can be done again."""

    ledger: Ledger
    damages: dict[str, Damage]
    _plans: dict[str, _Plan] = field(default_factory=dict)
    _known: dict[str, int] = field(default_factory=dict)

    def of(self, job: str, task: str) -> int:
        if task not in self._known:
            spec = self._plan(job).specs[task]
            needs = frozenset(needs_of(spec))
            self._known[task] = max((self._after(job, needs, key) for key in inputs_of(spec)), default=0)
        return self._known[task]

    def _after(self, job: str, needs: frozenset[str], key: str) -> int:
        """The first round in which this is there for a task with these needs."""
        damage, maker = self.damages.get(key), self._plan(job).makers.get(key)
        if damage and damage.task not in needs:
            return self.of(damage.job, damage.task) + 1
        return self.of(job, maker) if maker else 0

    def _plan(self, job: str) -> _Plan:
        if job not in self._plans:
            self._plans[job] = _plan(self.ledger, job)
        return self._plans[job]


def _again(ledger: Ledger, blobs: Blobs, owner: str, job: str, damages: list[Damage]) -> tuple[str, ...]:
    damages = [damage for damage in damages if not (damage.names_only and publish_again(blobs, owner, damage.key))]
    for damage in damages:
        quarantine(ledger, blobs, owner, damage.key, damage.what)
    if not damages:
        return ()
    return ledger.revive(job, _with_makers(ledger, owner, job, [damage.task for damage in damages]), again=True)


def _with_makers(ledger: Ledger, owner: str, job: str, ids: list[str]) -> list[str]:
    """These tasks, and of the same job whoever makes what they read and does not exist any more."""
    plan = _plan(ledger, job)
    wanted, found = list(ids), dict.fromkeys(ids)
    while wanted:
        read = [key for key in inputs_of(plan.specs[wanted.pop()]) if key in plan.makers]
        known = ledger.known(owner, read)
        new = {plan.makers[key]: None for key in read if key not in known and plan.makers[key] not in found}
        wanted += new
        found |= new
    return list(found)


def _plan(ledger: Ledger, job: str) -> _Plan:
    specs = {task.id: task.spec for task in all_tasks(ledger, job)}
    return _Plan(specs, {key: task for task, spec in specs.items() for key in results_of(spec).values()})


def quarantine(ledger: Ledger, blobs: Blobs, owner: str, key: str, what: str) -> None:
    """Take a damaged result out of the way, unless others have repaired it since, or do so now. Repeatable."""
    name = manifest_key(owner, key)
    data = written(blobs, name)
    bad = _damaged(blobs, owner, key, data or b"")
    if data and bad == () and _is_committed(ledger, owner, key, data):
        return
    ledger.set_aside(owner, [key], f"damaged: {what}")
    if data is not None:
        blobs.delete(name, was=data or None)
    for sha256 in bad or ():
        blobs.verify(owner, sha256, quarantine=True)


def _damaged(blobs: Blobs, owner: str, key: str, data: bytes) -> tuple[str, ...] | None:
    """The hashes of a result's blobs that are missing or damaged, None if its manifest is."""
    try:
        manifest = parse_manifest(data, key)
    except DamagedBlob:
        return None
    return tuple(a.sha256 for a in manifest.artifacts if not blobs.verify(owner, a.sha256))


def _is_committed(ledger: Ledger, owner: str, key: str, data: bytes) -> bool:
    """Whether the ledger says nothing else of it; of a manifest that was just made it says nothing yet."""
    row = ledger.known(owner, [key]).get(key)
    return row is None or row.manifest_sha256 == hashlib.sha256(data).hexdigest()
