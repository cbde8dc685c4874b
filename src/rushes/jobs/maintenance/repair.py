"""Repair: recreates exactly what is damaged. It is set aside first; inputs are recreated before their readers."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from rushes.blobs.manifests import parse_manifest, written
from rushes.blobs.port import Blobs
from rushes.blobs.published import Names, own_names
from rushes.domain.errors import DamagedBlob
from rushes.domain.grouping import grouped
from rushes.domain.keys import manifest_key
from rushes.jobs.maintenance.published_names import publish_again
from rushes.jobs.maintenance.reports import Damage
from rushes.jobs.maintenance.verify import DAMAGED
from rushes.ledger.pages import all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import inputs_of, needs_of, results_of


@dataclass(frozen=True, slots=True)
class _Plan:
    """The tasks of a job by their specs, and who makes which result."""

    specs: dict[str, str]
    makers: dict[str, str]


def repair(
    ledger: Ledger, blobs: Blobs, owner: str, damages: Iterable[Damage], names: Names = own_names
) -> tuple[str, ...]:
    """Set damaged results aside and make their tasks ready again; answers the tasks. Repeatable.

    What they read and gc has cleared since is made again as well.
    """
    jobs = grouped(damages, lambda damage: damage.job)
    return tuple(task for job, some in jobs.items() for task in _again(ledger, blobs, owner, job, some, names))


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


def _again(ledger: Ledger, blobs: Blobs, owner: str, job: str, damages: list[Damage], names: Names) -> tuple[str, ...]:
    named = {d.key for d in damages if d.names_only and publish_again(blobs, owner, d.job, d.key, names)}
    if named:
        ledger.set_aside(owner, named, "repaired: published again", note_only=True)
    damages = [d for d in damages if d.key not in named]
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
        ledger.set_aside(owner, [key], "repaired: it is intact", note_only=True)
        return
    ledger.set_aside(owner, [key], f"{DAMAGED}{what}")
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
