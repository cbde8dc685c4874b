"""A site with a server, a worker and a film that it found; and a bench where tests are the worker."""

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import redis
from proof.setups import Servers

from rushes.domain.job import Job
from rushes.domain.keys import digest, manifest_key
from rushes.domain.observation import MEDIA_TYPE, Observation, dump
from rushes.domain.result import Artifact, Manifest, Provenance, result_of
from rushes.domain.task import Finish, Lease
from rushes.domain.video import VideoFacts
from rushes.domain.worker import Incarnation
from rushes.jobs.control import announce
from rushes.media.reading.probe import probe
from rushes.plan.planner import JobSpec, job_facts, plan
from rushes.surfaces.api.documents.eioku_config import TaskConfigs
from tests.acceptance.conftest import VOICE, draw, sights
from tests.api.kit import Serving, serving, wait_for
from tests.conformance.conftest import Site, Sites

QUEUES = ("gpu_jobs", "cpu_jobs")
LANES = ("cpu", "gpu")


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one film: nine seconds with speech, text, a face and a cup."""
    folder = tmp_path_factory.mktemp("eioku_films")
    draw(folder / "seen.mp4", 9, (640, 360), rate=25, voice=VOICE, paint=sights)
    return folder


@pytest.fixture(scope="session")
def site(sites: Sites, films: Path) -> Site:
    """PostgreSQL and Valkey; the folder of films is stored as a path, as the document's client does."""
    found = sites("eioku", "postgres+valkey", sources=str(films))
    assert found.http.post("/paths", json={"path": str(films)}).status_code == 201
    return found


@pytest.fixture(scope="session")
def video(site: Site) -> dict[str, Any]:
    """The film, once every task of it is complete."""
    rows: list[dict[str, Any]] = []

    def complete() -> bool:
        rows[:] = site.http.get("/tasks").json()["items"]
        return bool(rows) and all(task["status"] == "COMPLETED" for task in rows)

    wait_for(complete, f"the six tasks were never complete: {rows}")
    (found,) = site.http.get("/videos").json()["items"]
    return dict(found)


@dataclass
class Bench:
    """A server without a worker: tests claim, complete and fail as one."""

    server: Serving
    redis: Any
    folder: Path
    facts: VideoFacts
    number: Iterator[int] = field(default_factory=itertools.count)

    @property
    def home(self) -> Any:
        return self.server.library.home

    def worker(self, lanes: Sequence[str] = LANES) -> str:
        """A worker that has just come."""
        who = Incarnation(f"w{next(self.number)}", "h", "b", 1, "1", tuple(lanes), 4, owner="me")
        self.home.ledger.renew(who, {}, {})
        return who.id

    def discover(self, name: str = "film") -> Job:
        """A file that is found: nobody has opened it yet."""
        path = self.folder / f"{name} {next(self.number)}.mp4"
        path.write_bytes(digest(str(path)).encode())
        (added,) = self.server.library.add([path], TaskConfigs().wanted())
        assert added.job
        assert added.created
        return added.job

    def open_plan(self, job: Job, worker: str, film: str = "") -> None:
        """What probe does: the plan of a real film under another hash (of `film`), so that no result is there yet."""
        (lease,) = self.claim(worker, [f"{job.id}.probe"])
        spec, facts = JobSpec.from_text(job.payload), replace(self.facts, sha256=digest(film or job.id))
        drafts = plan(job.id, spec, facts, self.home.specs, lease.spec)
        kept = job_facts(spec, facts, job.name, chunks=1)
        self.home.ledger.draft(job.id, lease.task, lease.fence, drafts, kept)
        self.finish(worker, [lease])

    def planned(self, stage: str = "", job: Job | None = None, film: str = "") -> tuple[Job, str]:
        """A job (a new one unless named) whose plan is open, and its worker; all that a stage needs is done."""
        job, by = job or self.discover(), self.worker()
        self.open_plan(job, by, film)
        stages = {"objects": ("develop",), "faces": ("develop",), "places": ("develop",), "shots": ("develop",)}
        for need in stages.get(stage, ()):
            self.finish(by, self.claim(by, [t.id for t in self.home.ledger.tasks(job.id, stage=need).rows]))
        return job, by

    def claim(self, worker: str, tasks: Sequence[str]) -> tuple[Lease, ...]:
        """As a worker that got these ids from the queue."""
        return tuple(self.home.ledger.claim(worker, LANES, 100, tasks)) if tasks else ()

    def finish(self, worker: str, leases: Sequence[Lease]) -> None:
        """Done, without results; what becomes ready is announced, what is over is settled, as a worker does."""
        done = self.home.ledger.complete(worker, [Finish(lease.task, lease.fence) for lease in leases])
        announce(self.home, done.ready)
        self.home.transport.settle([lease.task for lease in leases])

    def store(self, lease: Lease, lines: Sequence[Observation]) -> Finish:
        """The blob and the manifest that a worker stores for `objects`, and the completion that would commit them."""
        blobs, owner, key = self.home.blobs, self.home.owner, json.loads(lease.spec)["results"]["objects"]
        blob = blobs.put(owner, dump(lines))
        origin = Provenance(
            lease.task.split(".")[0], "objects", "rushes.objects", "1", "balanced", "c", "i", lease.fence
        )
        artifacts = (Artifact("objects.jsonl", blob.sha256, blob.size, MEDIA_TYPE),)
        manifest = Manifest(key, "objects", artifacts, origin, count=len(lines), facts={"kinds": ["object"]})
        blobs.create(manifest_key(owner, key), manifest.to_bytes())
        return Finish(lease.task, lease.fence, (result_of(manifest, "ab" * 32),))

    def video(self, job: Job) -> str:
        """The id of its video, once its plan is open."""
        return str(json.loads(self.home.ledger.job(job.id).facts)["video"])

    def queued(self) -> list[str]:
        """Every job id that waits in a queue."""
        return [id for queue in QUEUES for id in self.redis.lrange(queue, 0, -1)]

    def tasks(self, job: Job, **filters: str) -> dict[str, dict[str, Any]]:
        """Its six tasks by type, as the API tells them."""
        rows = self.server.get("/tasks", params={"video_id": job.id, **filters})["items"]
        return {row["task_type"]: row for row in rows}

    def task(self, id: str) -> dict[str, Any]:
        """One task, as the API tells it."""
        return dict(self.server.get(f"/tasks/{id}"))


@pytest.fixture(scope="session")
def bench(all_servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("eioku_bench")
    home = folder / ".rushes"  # films beside it are seen by every machine
    home.mkdir()
    text = all_servers.settings("postgres+valkey", "eioku_bench")
    (home / "rushes.toml").write_text(text)
    url = next(line.split('"')[1] for line in text.splitlines() if line.startswith("hints"))
    facts = probe(draw(folder / "facts.mp4", 3))
    with (
        serving(home, sources=str(folder)) as server,
        closing(redis.Redis.from_url(url.replace("valkey:", "redis:"), decode_responses=True)) as client,
    ):
        yield Bench(server, client, folder, facts)
