"""Clearing up: what only other stages read, clips past their time, and what killed attempts left behind."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import Job, JobState
from rushes.domain.keys import manifest_key, parse_blob_key
from rushes.domain.result import Manifest
from rushes.domain.stage import Card
from rushes.domain.task import Task
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import inputs_of, results_of


@dataclass(frozen=True, slots=True)
class Cleared:
    """How much was set aside and freed."""

    results: int
    blobs: int
    size: int


@dataclass(frozen=True, slots=True)
class Rules:
    """What may go, and when."""

    cards: Mapping[str, Card]
    keep_days: int
    clip_days: int
    young_seconds: float = 86400.0  # an unnamed blob that is younger may belong to work in progress
    gone: frozenset[str] = frozenset()  # jobs that were deleted: they want nothing


@dataclass(frozen=True, slots=True)
class _Named:
    """The hashes that manifests name, and the results of jobs that were deleted."""

    blobs: frozenset[str]
    left: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sorted:
    """Results by what becomes of them: no job wants those that go any more."""

    going: frozenset[str]
    wanted: frozenset[str]


def gc(ledger: Ledger, blobs: Blobs, owner: str, rules: Rules, now: datetime | None = None) -> Cleared:
    """Set aside what the rules let go (row, manifest, then blobs), never what some other job wants."""
    now = now or datetime.now(UTC)
    going = sorted(_sort(ledger, owner, rules, now).going)
    gone = _set_aside(ledger, owner, going, "no longer needed")
    late = _sort(ledger, owner, rules, now).wanted.intersection(going) if going else frozenset()
    _bring_back(ledger, owner, late)
    _clear(blobs, owner, [key for key in going if key not in late])
    named = _named(blobs, owner, rules)
    for key in _orphans(ledger, owner, rules, named.left, now):
        blobs.remove(manifest_key(owner, key))  # nobody published it: that follows the ledger's row
    count, size = _sweep_blobs(blobs, owner, rules, named.blobs)
    return Cleared(gone - len(late), count, size)


def drop(ledger: Ledger, blobs: Blobs, owner: str, keys: Collection[str]) -> int:
    """Set results aside with their published names; their blobs go with the next gc. Repeatable; answers how many."""
    gone = _set_aside(ledger, owner, sorted(keys), "deleted")
    _clear(blobs, owner, keys)
    return gone


def _set_aside(ledger: Ledger, owner: str, keys: Sequence[str], why: str) -> int:
    starts = range(0, len(keys), ledger.batch)
    return sum(ledger.set_aside(owner, keys[first : first + ledger.batch], why) for first in starts)


def _clear(blobs: Blobs, owner: str, keys: Iterable[str]) -> None:
    for key in keys:
        _unpublish(blobs, owner, key)
        blobs.remove(manifest_key(owner, key))


def _sort(ledger: Ledger, owner: str, rules: Rules, now: datetime) -> Sorted:
    going: set[str] = set()
    wanted: set[str] = set()
    for job in all_jobs(ledger, owner):
        if job.id in rules.gone:
            continue
        tasks = all_tasks(ledger, job.id)
        may_go = set(_passing(job, tasks, rules, now)) if job.state is JobState.COMPLETED else set()
        going |= may_go
        wanted |= {key for task in tasks for key in _wants(job, task)} - may_go
    return Sorted(frozenset(going - wanted), frozenset(wanted))


def _wants(job: Job, task: Task) -> Iterator[str]:
    yield from results_of(task.spec).values()
    if job.state is not JobState.COMPLETED:
        yield from inputs_of(task.spec)


def _passing(job: Job, tasks: tuple[Task, ...], rules: Rules, now: datetime) -> Iterator[str]:
    days = (now - datetime.fromisoformat(job.finished_at)).days if job.finished_at else 0
    for task in tasks:
        card = rules.cards.get(task.stage)
        passing = card.passing if card and days >= rules.keep_days else ()
        expiring = card.expiring if card and days >= rules.clip_days else ()
        yield from (key for output, key in results_of(task.spec).items() if output in (*passing, *expiring))


def _bring_back(ledger: Ledger, owner: str, late: frozenset[str]) -> None:
    """A job that came in meanwhile wants these: their manifests are there still, so its tasks adopt them again."""
    for job in all_jobs(ledger, owner) if late else ():
        tasks = [t.id for t in all_tasks(ledger, job.id) if late.intersection(results_of(t.spec).values())]
        if tasks:
            ledger.revive(job.id, tasks, again=True)


def _manifest(blobs: Blobs, key: str) -> Manifest | None:
    data = blobs.read(key)
    with contextlib.suppress(DamagedBlob):
        return parse_manifest(data, key) if data else None
    return None


def _unpublish(blobs: Blobs, owner: str, key: str) -> None:
    manifest = _manifest(blobs, manifest_key(owner, key))
    for artifact in manifest.artifacts if manifest else ():
        if artifact.publish:
            blobs.remove(artifact.publish)


def _named(blobs: Blobs, owner: str, rules: Rules) -> _Named:
    named: set[str] = set()
    left: set[str] = set()
    for key in blobs.keys(f"results/{owner}/"):
        if manifest := _manifest(blobs, key):
            named |= {artifact.sha256 for artifact in manifest.artifacts}
            left |= {manifest.key} if manifest.provenance.run_id in rules.gone else set()
    return _Named(frozenset(named), frozenset(left))


def _orphans(ledger: Ledger, owner: str, rules: Rules, left: frozenset[str], now: datetime) -> frozenset[str]:
    """What a slot finished after its job was deleted, unless another job has taken it up or will."""
    unknown = left - ledger.known(owner, left).keys() if left else left
    return unknown - _sort(ledger, owner, rules, now).wanted if unknown else unknown


def _sweep_blobs(blobs: Blobs, owner: str, rules: Rules, named: frozenset[str]) -> tuple[int, int]:
    """Drop blobs that no manifest names: leftovers of killed attempts, and of what was set aside."""
    count = size = 0
    for key in blobs.keys(f"blobs/{owner}/"):
        _, sha256 = parse_blob_key(key)
        if sha256 not in named and (blobs.age(owner, sha256) or 0.0) >= rules.young_seconds:
            size += blobs.size(owner, sha256) or 0
            blobs.drop(owner, sha256)
            count += 1
    return count, size
