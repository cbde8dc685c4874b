"""Clearing up: what only other stages read, clips past their time, and what killed attempts left behind."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import Job, JobState
from rushes.domain.keys import manifest_key
from rushes.domain.result import Manifest
from rushes.domain.stage import Card
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import results_of


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
    old_enough: Callable[[str], bool]  # whether an unnamed blob is old enough not to belong to work in progress


def gc(ledger: Ledger, blobs: Blobs, owner: str, rules: Rules, now: datetime | None = None) -> Cleared:
    """Set aside what the rules let go (row, manifest, then blobs), never what an unfinished job needs."""
    now = now or datetime.now(UTC)
    needed, going = _sort(ledger, owner, rules, now)
    going -= needed
    gone = [key for key in sorted(going) if ledger.set_aside(owner, [key], "no longer needed")]
    for key in sorted(going):
        _unpublish(blobs, owner, key)
        blobs.remove(manifest_key(owner, key))
    count, size = _sweep_blobs(blobs, owner, rules)
    return Cleared(len(gone), count, size)


def _sort(ledger: Ledger, owner: str, rules: Rules, now: datetime) -> tuple[set[str], set[str]]:
    needed: set[str] = set()
    going: set[str] = set()
    for job in all_jobs(ledger, owner):
        may_go = set(_passing(ledger, job, rules, now)) if job.state is JobState.COMPLETED else set()
        going |= may_go
        if job.state is not JobState.COMPLETED:
            needed |= {key for task in all_tasks(ledger, job.id) for key in _all_keys(task.spec)}
    return needed, going


def _all_keys(spec: str) -> Iterator[str]:
    doc = json.loads(spec)
    yield from doc["results"].values()
    for keys in doc["inputs"].values():
        yield from keys


def _passing(ledger: Ledger, job: Job, rules: Rules, now: datetime) -> Iterator[str]:
    days = (now - datetime.fromisoformat(job.finished_at)).days if job.finished_at else 0
    for task in all_tasks(ledger, job.id):
        card = rules.cards.get(task.stage)
        for output, key in results_of(task.spec).items():
            passing = card is not None and output in card.passing and days >= rules.keep_days
            if passing or (job.recipe == "clip" and days >= rules.clip_days):
                yield key


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


def _sweep_blobs(blobs: Blobs, owner: str, rules: Rules) -> tuple[int, int]:
    """Drop blobs that no manifest names: leftovers of killed attempts, and of what was set aside."""
    named = {
        artifact.sha256
        for key in blobs.keys(f"results/{owner}/")
        if (manifest := _manifest(blobs, key))
        for artifact in manifest.artifacts
    }
    count = size = 0
    for key in blobs.keys(f"blobs/{owner}/"):
        sha256 = key.rsplit("/", 1)[-1]
        if sha256 not in named and rules.old_enough(key):
            size += blobs.size(owner, sha256) or 0
            blobs.drop(owner, sha256)
            count += 1
    return count, size
