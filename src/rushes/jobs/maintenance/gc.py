"""Clearing up: what only other stages read, clips past their time, and what killed attempts left behind."""

import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import parse_blob_key
from rushes.domain.result import Manifest
from rushes.jobs.maintenance.deletion import Announce, Deletion, RetentionRules, footage_of, sort_results
from rushes.ledger.pages import all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import results_of


@dataclass(frozen=True, slots=True)
class GcReport:
    """How much was set aside and freed."""

    results: int
    blobs: int
    size: int


@dataclass(frozen=True, slots=True)
class _Named:
    """The hashes that manifests name, and the results of jobs that were deleted."""

    blobs: frozenset[str]
    left: frozenset[str]


def gc(
    ledger: Ledger,
    blobs: Blobs,
    owner: str,
    rules: RetentionRules,
    now: datetime | None = None,
    announce: Announce = lambda _tasks: None,
) -> GcReport:
    """Set aside what the rules let go (row, manifest, then blobs), never what some other job wants."""
    clearing = Deletion(ledger, blobs, owner, rules, now or datetime.now(UTC), announce)
    clearing.go_on()
    results = clearing.clear(sort_results(ledger, owner, rules, clearing.now).going, "no longer needed")
    named = _named(clearing)
    clearing.clear(_orphans(clearing, named.left), "its job was deleted")
    count, size = _sweep_blobs(blobs, owner, rules, named.blobs)
    return GcReport(results, count, size)


def drop(
    ledger: Ledger,
    blobs: Blobs,
    owner: str,
    jobs: Collection[str],
    gone: Collection[str] = (),
    announce: Announce = lambda _tasks: None,
) -> int:
    """Set aside what these jobs of one video made and no other wants, names too; `gone` want nothing.

    Repeatable; answers how many. Their blobs go with the next gc.
    """
    if not jobs:
        return 0
    footage = footage_of(ledger.jobs(owner, ids=jobs).rows)  # theirs; a clip's job does not say it
    rules = RetentionRules({}, 0, 0, gone=frozenset((*jobs, *gone)), footage=footage)
    clearing = Deletion(ledger, blobs, owner, rules, datetime.now(UTC), announce)
    clearing.go_on(jobs)
    keys = {key for job in jobs for task in all_tasks(ledger, job) for key in results_of(task.spec).values()}
    return clearing.clear(keys - sort_results(ledger, owner, rules, clearing.now).wanted, "deleted", jobs)


def _manifest(blobs: Blobs, key: str) -> Manifest | None:
    with contextlib.suppress(DamagedBlob):
        data = read_document(blobs, key)
        return parse_manifest(data, key) if data else None
    return None


def _named(clearing: Deletion) -> _Named:
    named: set[str] = set()
    left: set[str] = set()
    for key in clearing.blobs.keys(f"results/{clearing.owner}/"):
        if manifest := _manifest(clearing.blobs, key):
            named |= {artifact.sha256 for artifact in manifest.artifacts}
            left |= {manifest.key} if manifest.provenance.run_id in clearing.rules.gone else set()
    named |= {artifact.sha256 for manifest in clearing.noted() for artifact in manifest.artifacts}
    return _Named(frozenset(named), frozenset(left))


def _orphans(clearing: Deletion, left: frozenset[str]) -> frozenset[str]:
    """What a slot finished after its job was deleted, unless another job has taken it up or will."""
    ledger, owner = clearing.ledger, clearing.owner
    unknown = left - ledger.known(owner, left).keys() if left else left
    return unknown - sort_results(ledger, owner, clearing.rules, clearing.now).wanted if unknown else unknown


def _sweep_blobs(blobs: Blobs, owner: str, rules: RetentionRules, named: frozenset[str]) -> tuple[int, int]:
    """Drop blobs that no manifest names: leftovers of killed attempts, and of what was set aside."""
    count = size = 0
    for key in blobs.keys(f"blobs/{owner}/"):
        _, sha256 = parse_blob_key(key)
        found = blobs.stat(owner, sha256) if sha256 not in named else None
        if found and found.age >= rules.young_seconds and blobs.delete(key, older=rules.young_seconds):
            count, size = count + 1, size + found.size
    return count, size
