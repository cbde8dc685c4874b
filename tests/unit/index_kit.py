"""A ledger, blobs and an index, with a worker that does exactly what a test says."""

from dataclasses import dataclass, field
from fractions import Fraction

from rushes.blobs.port import Blobs
from rushes.domain.job import NewJob
from rushes.domain.keys import canonical, manifest_key, task_id
from rushes.domain.observation import MEDIA_TYPE, Observation, dump
from rushes.domain.result import Artifact, Manifest, Provenance, Result, result_of
from rushes.domain.span import Span
from rushes.domain.task import Draft, Finish, Need
from rushes.domain.worker import Incarnation
from rushes.index.follower import Follower
from rushes.index.search import search
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.port import Ledger
from rushes.records.port import Records

MS = Fraction(1, 1000)
WORKER = Incarnation("arm-4.host.boot.w1", "host", "boot", 1, "1", machine="arm-4")


def line(text: str, second: int, language: str = "en") -> Observation:
    return Observation("speech", Span(second * 1000, second * 1000 + 1000, MS), text, 0.9, language)


@dataclass
class Studio:
    """A ledger with a worker that does exactly what a test says."""

    ledger: Ledger
    blobs: Blobs
    records: Records
    index: SqliteIndex
    fences: dict[str, int] = field(default_factory=dict)

    @property
    def follower(self) -> Follower:
        return Follower(self.ledger, self.records, self.blobs, self.index)

    def open(self, job: str, chunks: int = 3, take: str = "", video: str = "v", adopted: bool = False) -> None:
        """Submit a job and open its plan: transcribe per chunk, then transcript."""
        probe = task_id(job, "probe", None)
        self.ledger.renew(WORKER, {}, {})
        first = Draft(probe, job, "probe", None, _spec({"facts": f"{job}-facts"}))
        self.ledger.submit(NewJob(job, "anna", job, "a.mp4", "searchable", "{}"), first)
        self._claim()
        parts = [(f"{take}{video}-{n}", task_id(job, "transcribe", n), n) for n in range(chunks)]
        drafts = [
            Draft(id, job, "transcribe", n, _spec({"lines": key}, n), order=n, adopted=adopted) for key, id, n in parts
        ]
        needs = tuple(Need(id) for _, id, _ in parts)
        whole = _spec({"transcript": f"{take}{video}-whole"})
        drafts.append(Draft(task_id(job, "transcript", None), job, "transcript", None, whole, order=99, needs=needs))
        facts = {
            "video": video,
            "name": "a.mp4",
            "path": "a.mp4",
            "duration_us": 180_000_000,
            "width": 10,
            "height": 10,
        }
        self.ledger.draft(job, probe, self.fences[probe], drafts, canonical(facts).decode())
        self._complete(probe, self.save(f"{job}-facts", []))

    def chunk(self, job: str, n: int, *lines: Observation, take: str = "", video: str = "v") -> None:
        """Finish one chunk."""
        self._claim()
        self._complete(task_id(job, "transcribe", n), self.save(f"{take}{video}-{n}", lines))

    def give_back(self, job: str, n: int) -> None:
        """Take one chunk and give it back."""
        self._claim()
        task = task_id(job, "transcribe", n)
        self.ledger.give_back(WORKER.id, [(task, self.fences[task])], "a test")

    def whole(self, job: str, *lines: Observation, take: str = "", video: str = "v") -> None:
        """Finish the transcript."""
        self._claim()
        result = self.save(f"{take}{video}-whole", lines, "thumbs/v/poster.jpg")
        self._complete(task_id(job, "transcript", None), result)

    def save(self, key: str, lines: tuple[Observation, ...] | list[Observation], publish: str | None = None) -> Result:
        """Blob, then manifest."""
        blob = self.blobs.put("anna", dump(lines))
        artifact = Artifact("lines.ndjson", blob.sha256, blob.size, MEDIA_TYPE, publish)
        origin = Provenance("r", "transcribe", "p", "1", "balanced", "c", "i", 1)
        manifest = Manifest(key, "lines", (artifact,), origin, count=len(lines))
        self.blobs.create(manifest_key("anna", key), manifest.to_bytes())
        return result_of(manifest, "sha")

    def said(self, query: str = "word OR other") -> list[str]:
        """What readers find now."""
        return sorted(h.text for h in search(self.index, "anna", query).hits)

    def _claim(self) -> None:
        for lease in self.ledger.claim(WORKER.id, ["cpu"], 50):
            self.fences[lease.task] = lease.fence

    def _complete(self, task: str, result: Result) -> None:
        self.ledger.complete(WORKER.id, [Finish(task, self.fences[task], (result,), seconds=2.5)])


def _spec(results: dict[str, str], chunk: int | None = None) -> str:
    span = None if chunk is None else Span(chunk * 60_000, (chunk + 1) * 60_000, MS).to_json()
    return canonical({"results": results, "span": span}).decode()
