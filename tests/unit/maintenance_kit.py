"""A ledger and blobs in memory, with jobs that share results, for the tests of their care."""

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rushes.blobs.documents import read_document
from rushes.domain.job import NewJob
from rushes.domain.keys import blob_key, manifest_key
from rushes.domain.result import Artifact, Manifest, Provenance, Result, result_of
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.task import Draft, Finish
from rushes.domain.worker import Incarnation
from rushes.jobs.maintenance.deletion import RetentionRules
from rushes.jobs.maintenance.gc import gc
from rushes.ledger.memory import MemoryLedger
from tests.memory_blobs import MemoryBlobs

ME = Incarnation("m.h.b.1", "h", "b", 1, "1")
RULES = RetentionRules(
    {"clip": StageSpec("clip", 1, Scope.VIDEO, ("clip",), expiring=("clip",))}, 1, 30, young_seconds=0.0
)


class World:
    """A ledger and blobs in memory; `day` is when things happen."""

    def __init__(self) -> None:
        self.day = 0
        self.ledger = MemoryLedger(wall=lambda: int(self.now().timestamp() * 1000))
        self.blobs = MemoryBlobs()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=self.day)

    def gc(self, *gone: str) -> int:
        return gc(self.ledger, self.blobs, "me", replace(RULES, gone=frozenset(gone)), self.now()).results

    def submit(self, name: str, key: str, then: bool = False, publish: str | None = None) -> str:
        """A job whose first task makes the result; with `then`, another task follows."""
        job, first = f"job_{name}", f"job_{name}.clip"
        self.ledger.submit(NewJob(job, "me", name, name, "clip", "{}"), Draft(first, job, "clip", None, spec(clip=key)))
        self.ledger.renew(ME, {}, {})
        (lease,) = self.ledger.claim(ME.id, ["cpu"], 1)
        if then:
            later = Draft(f"job_{name}.later", job, "later", None, spec(), order=1)
            self.ledger.draft(job, first, lease.fence, [later], "{}")
        finish = Finish(lease.task, lease.fence, (self.result(key, job, publish),))
        self.ledger.complete(ME.id, [finish])
        return job

    def planned(self, name: str, probe: str, specs: dict[str, str], facts: str = "{}") -> str:
        """A job whose plan has these tasks by stage."""
        job, first = f"job_{name}", f"job_{name}.probe"
        self.ledger.submit(
            NewJob(job, "me", name, name, "r", "{}"), Draft(first, job, "probe", None, spec(facts=probe))
        )
        self.ledger.renew(ME, {}, {})
        (lease,) = self.ledger.claim(ME.id, ["cpu"], 1, [first])
        drafts = [
            Draft(f"{job}.{stage}", job, stage, None, one, order=n) for n, (stage, one) in enumerate(specs.items())
        ]
        self.ledger.draft(job, first, lease.fence, drafts, facts)
        self.ledger.complete(ME.id, [Finish(first, lease.fence)])
        return job

    def result(self, key: str, job: str = "job", name: str | None = None) -> Result:
        blob = self.blobs.put("me", key.encode())
        origin = Provenance(job, "clip", "p", "1", "fast", "c", "i", 1)
        one = Manifest(key, "clip", (Artifact("clip.mp4", blob.sha256, blob.size, "video/mp4", name),), origin)
        self.blobs.create(manifest_key("me", key), one.to_bytes())
        return result_of(one, hashlib.sha256(one.to_bytes()).hexdigest())

    def spoil(self, key: str) -> None:
        data = read_document(self.blobs, manifest_key("me", key))
        assert data
        self.blobs.delete(blob_key("me", json.loads(data)["artifacts"][0]["sha256"]))


def spec(reads: Collection[str] = (), needs: Collection[str] = (), **results: str) -> str:
    return json.dumps({"results": results, "inputs": {"some.output": list(reads)}, "needs": list(needs)})
