"""The sixteen correctness properties, on PostgreSQL and Valkey.

What the document asks of its ML service is shown here on the engines of the worker (5, 8, 13) and its slots (16), and
in test_ml_service.py on the service itself.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psutil
import pytest
import redis
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rushes.domain.errors import ModelMissing
from rushes.domain.job import JobCommand
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.domain.task import Failure, Finish, LeaseStatus, Verdict, retry_delay
from rushes.domain.task_types import TASK_TYPES
from rushes.domain.worker import Incarnation
from rushes.engines.http import InferenceServices
from rushes.engines.models.store import ModelStore
from rushes.jobs.control import Reconciler, announce_ready
from rushes.surfaces.api.documents.eioku import ABORTED
from tests.api.kit import wait_for
from tests.conformance.conftest import Site
from tests.conformance.eioku.conftest import LANES, Bench

few = settings(max_examples=4, deadline=None, database=None)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\x00", exclude_categories=("Cs", "Cc")), max_size=20)
SIX = ("object_detection", "face_detection", "transcription", "ocr", "place_detection", "scene_detection")
AFTER_DEVELOP = st.sampled_from(["objects", "faces", "places"])
BROKEN = Failure("EngineAway", "the ML service is away", "hint", "may work next time")
SMALL = ("efficientdet-lite0", "yunet-sface", "efficientnet-lite0", "ppocr-v6-tiny")  # quick to read twice
TICK = Fraction(1, 1000)
PROVENANCE = ("run_id", "config_hash", "input_hash", "model_profile", "producer", "producer_version")


def first(job: str, stage: str) -> str:
    """The task of a stage on the only chunk of the bench's film."""
    return f"{job}.{stage}.00000"


@few
@given(name=NAMES)
def test_property_01_discovery_makes_six_pending_tasks_and_their_jobs(bench: Bench, name: str) -> None:
    """Property 1: every discovered video gets exactly six PENDING tasks, and a job in Redis for each of them.

    Where: jobs/steps.py, jobs/intake.py
    """
    job, worker = bench.discover(name), bench.worker()
    tasks = bench.server.get("/tasks", params={"video_id": job.id})["items"]
    assert Counter(task["task_type"] for task in tasks) == dict.fromkeys(SIX, 1)
    assert {task["status"] for task in tasks} == {"PENDING"}
    assert f"ml_{job.id}.probe" in bench.queued()
    bench.open_plan(job, worker)
    seen: set[str] = set()
    while waiting := [id for id in bench.queued() if id.startswith(f"ml_{job.id}.")]:
        seen |= {id.split(".")[1] for id in waiting}
        bench.finish(worker, bench.claim(worker, [id.removeprefix("ml_") for id in waiting]))
        for id in waiting:
            bench.redis.lrem("gpu_jobs", 0, id)
            bench.redis.lrem("cpu_jobs", 0, id)
    assert {TASK_TYPES[type][0] for type in SIX} <= seen
    assert {task["status"] for task in bench.tasks(job).values()} == {"COMPLETED"}


@few
@given(stage=AFTER_DEVELOP, times=st.integers(1, 5))
def test_property_02_a_task_enqueued_again_is_one_job(bench: Bench, stage: str, times: int) -> None:
    """Property 2: the job id is `ml_{task_id}`; a task that is enqueued several times is in the queue once.

    Where: transport/redis.py
    """
    job, _ = bench.planned(stage)
    task = f"{job.id}.{stage}"
    for _ in range(times):
        answer = bench.server.post(f"/tasks/{task}/enqueue")
        assert answer == {"task_id": task, "job_id": f"ml_{task}", "status": "enqueued"}
    assert bench.redis.lrange("gpu_jobs", 0, -1).count(f"ml_{first(job.id, stage)}") == 1
    payload = json.loads(bench.redis.get(f"job:ml_{first(job.id, stage)}"))
    assert set(payload) == {"task_id", "task_type", "video_id", "video_path", "config"}


MOVES = {
    "RUN": ("PENDING", "RUNNING"),
    "COMPLETE": ("RUNNING", "COMPLETED"),
    "FAIL": ("RUNNING", "FAILED"),
}
RECORDED = {"COMPLETE": "done", "FAIL": "dead", "cancel": "cancelled", "retry": "revived"}  # a start: started_at
BY_API = {"cancel": ({"PENDING", "RUNNING"}, "CANCELLED"), "retry": ({"FAILED", "CANCELLED"}, "PENDING")}


@few
@given(moves=st.lists(st.sampled_from([*MOVES, *BY_API]), min_size=3, max_size=8), stage=AFTER_DEVELOP)
@example(moves=["RUN", "FAIL", "retry", "RUN", "COMPLETE", "cancel", "retry"], stage="objects")
@example(moves=["cancel", "RUN", "retry", "RUN", "cancel", "COMPLETE"], stage="places")
def test_property_03_only_the_moves_of_the_lifecycle_happen(bench: Bench, moves: list[str], stage: str) -> None:
    """Property 3: a task follows its lifecycle, every other transition is refused, and each one is timestamped.

    Where: surfaces/api/documents/eioku.py, jobs/steps.py
    """
    job, worker = bench.planned(stage)
    task, state, ledger = f"{job.id}.{stage}", "PENDING", bench.home.ledger
    lease = None
    for move in moves:
        before, last = state, ledger.events(job.id)[-1].number
        if move in BY_API:
            allowed, after = BY_API[move]
            bench.server.post(f"/tasks/{task}/{move}", status=200 if state in allowed else 400)
            state = after if state in allowed else state
        elif move == "RUN":
            got = bench.claim(worker, [first(job.id, stage)])
            assert bool(got) == (state == "PENDING")
            lease, state = (got[0], "RUNNING") if got else (lease, state)
        elif lease:
            verdict = _end(ledger, worker, lease, move)
            assert state == "RUNNING" or verdict in (Verdict.CANCELLED, Verdict.LOST, Verdict.OK)
            state = MOVES[move][1] if state == "RUNNING" else state
        told, events = bench.task(task), ledger.events(job.id, last)
        assert (RECORDED.get(move) in [event.type for event in events if event.at]) is (before != state != "RUNNING")
        assert told["status"] == state
        assert told["created_at"]
        assert bool(told["completed_at"]) == (state == "COMPLETED")
        errors = {"FAILED": f"{BROKEN.kind}: {BROKEN.message}", "CANCELLED": ABORTED if told["started_at"] else None}
        assert told["error"] == errors.get(state)
        assert told["started_at"] or state in ("PENDING", "CANCELLED")


def _end(ledger: Any, worker: str, lease: Any, move: str) -> Verdict:
    if move == "FAIL":
        return Verdict(ledger.fail(worker, lease.task, lease.fence, BROKEN, None))
    return Verdict(ledger.complete(worker, [Finish(lease.task, lease.fence)]).verdicts[0])


@few
@given(stage=AFTER_DEVELOP)
def test_property_04_a_consumed_job_runs_and_a_finished_one_is_gone(bench: Bench, stage: str) -> None:
    """Property 4: when a worker takes a job, its task is RUNNING; when it is done, Redis has no trace of the job.

    Where: transport/redis.py, ledger/port.py
    """
    bench.redis.delete("gpu_jobs", "gpu_jobs:positions")
    job, worker = bench.planned(stage)
    task = first(job.id, stage)
    taken: list[str] = []
    while task not in taken:
        taken += bench.home.transport.wait(["gpu"], 0)
    leases = bench.claim(worker, [task])
    assert bench.task(f"{job.id}.{stage}")["status"] == "RUNNING"
    bench.finish(worker, leases)
    assert bench.task(f"{job.id}.{stage}")["status"] == "COMPLETED"
    assert f"ml_{task}" not in bench.queued()
    assert not bench.redis.exists(f"job:ml_{task}")


@settings(max_examples=8, deadline=None, database=None)
@given(
    type=st.sampled_from(["", "object.detection", "face.detection", "ocr.text", "place.classification", "scene"]),
    limit=st.integers(1, 50),
)
def test_property_05_every_answer_says_what_produced_it(
    site: Site, video: dict[str, Any], type: str, limit: int
) -> None:
    """Property 5: every artifact names its run, configuration, input, profile, producer and version.

    Where: library/videos/runs.py
    """
    asked = {"asset_id": video["id"], "artifact_type": type, "limit": limit}
    found = site.http.get("/artifacts", params=asked).json()["items"]
    assert found, f"nothing of type {type!r}"
    assert all(envelope[name] for envelope in found for name in PROVENANCE)
    assert {envelope["input_hash"] for envelope in found} == {video["sha256"]}


BOXES = st.tuples(*[st.floats(0, 0.5).map(lambda x: round(x, 4))] * 4)
SEEN = st.lists(st.tuples(st.sampled_from(["cup", "person", "dog"]), st.floats(0, 1), BOXES), max_size=6)


@few
@given(seen=SEEN, lost=st.booleans())
@example(seen=[("cup", 0.9, (0.1, 0.1, 0.2, 0.2))], lost=True)
def test_property_06_a_response_becomes_artifacts_and_a_completed_task_at_once(
    bench: Bench, seen: Any, lost: bool
) -> None:
    """Property 6: all artifacts appear in the transaction that completes their task; if it is refused, none do.

    Where: worker/broker/attempt.py, ledger/port.py
    """
    job, worker = bench.planned("objects")
    (lease,) = bench.claim(worker, [first(job.id, "objects")])
    lines = [Observation("object", Span(0, 90, TICK), label, sure, box=box) for label, sure, box in seen]
    done = bench.store(lease, lines)
    asked = {"asset_id": bench.video(job), "artifact_type": "object.detection"}
    bench.server.library.home.follower.catch_up()
    assert bench.server.get("/artifacts", params=asked)["items"] == []
    assert bench.task(f"{job.id}.objects")["status"] == "RUNNING"
    if lost:
        bench.home.ledger.control(worker, JobCommand.LEAVE)
        Reconciler(bench.home.ledger, bench.home.transport, bench.home.lane_of).sweep(10_000)
    assert bench.home.ledger.complete(worker, [done]).verdicts == (Verdict.LOST if lost else Verdict.OK,)
    bench.server.library.home.follower.catch_up()
    if lost:
        assert bench.server.get("/artifacts", params=asked)["items"] == []
        assert bench.task(f"{job.id}.objects")["status"] == "PENDING"
        return
    found = [envelope["payload_json"] for envelope in bench.server.get("/artifacts", params=asked)["items"]]
    assert found == [
        {"label": label, "confidence": sure, "bounding_box": dict(zip(("x", "y", "width", "height"), box, strict=True))}
        for label, sure, box in seen
    ]
    assert bench.task(f"{job.id}.objects")["status"] == "COMPLETED"


@few
@given(lost=st.sets(AFTER_DEVELOP, min_size=1), running=AFTER_DEVELOP)
def test_property_07_the_reconciler_brings_back_what_redis_lost(bench: Bench, lost: set[str], running: str) -> None:
    """Property 7: a PENDING task without a job is enqueued again, and so is a RUNNING task whose worker is gone.

    Where: jobs/control.py
    """
    job, worker = bench.planned("objects")
    assert bench.claim(worker, [first(job.id, running)])
    bench.redis.flushdb()
    reconciler = Reconciler(bench.home.ledger, bench.home.transport, bench.home.lane_of)
    reconciler.sweep(10_000)
    assert bench.task(f"{job.id}.{running}")["status"] == "RUNNING", "a live worker keeps its task"
    assert {f"ml_{first(job.id, stage)}" for stage in lost - {running}} <= set(bench.queued())
    bench.home.ledger.control(worker, JobCommand.LEAVE)  # it is gone: its lease is over
    bench.redis.flushdb()
    reconciler.sweep(10_000)
    assert bench.task(f"{job.id}.{running}")["status"] == "PENDING"
    assert f"ml_{first(job.id, running)}" in bench.queued()


class _Service(BaseHTTPRequestHandler):
    """An ML service that counts how many questions it answers at the same time."""

    guard = threading.Lock()
    now = most = 0
    full = threading.Event()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.guard:
            type(self).now += 1
            type(self).most = max(self.most, self.now)
        self.full.wait(0.02)
        with self.guard:
            type(self).now -= 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def _served() -> Iterator[str]:
    _Service.now = _Service.most = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@few
@given(requests=st.integers(1, 8), slots=st.integers(1, 3))
def test_property_08_no_more_questions_at_once_than_are_allowed(requests: int, slots: int) -> None:
    """Property 8: a worker never has more requests in flight than configured; the others wait.

    Where: engines/http.py
    """
    with _served() as url:
        services = InferenceServices([url], in_flight=slots)
        asking = [threading.Thread(target=_ask, args=(services,)) for _ in range(requests)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        assert 1 <= _Service.most <= slots


def _ask(services: InferenceServices) -> None:
    session = services.session()
    session.post("objects", b"{}")
    session.close()


@few
@given(stage=AFTER_DEVELOP, runs=st.booleans())
def test_property_09_a_cancelled_task_is_not_picked_up_and_a_running_one_is_told(
    bench: Bench, stage: str, runs: bool
) -> None:
    """Property 9: no worker picks up a task cancelled while PENDING; one cancelled while RUNNING commits nothing.

    Where: jobs/steps.py, ledger/sql/control.py
    """
    job, worker = bench.planned("objects")
    task, before = first(job.id, stage), bench.tasks(job)
    leases = bench.claim(worker, [task]) if runs else ()
    assert bench.server.post(f"/tasks/{job.id}.{stage}/cancel")["status"] == "CANCELLED"
    assert bench.claim(worker, [task]) == ()
    who = Incarnation(worker, "h", "b", 1, "1", LANES, 4, owner="me")
    for lease in leases:
        renewed = bench.home.ledger.renew(who, {task: lease.fence}, {})
        assert renewed.leases == {task: LeaseStatus.CANCELLED}
        done = bench.home.ledger.complete(worker, [Finish(task, lease.fence)])
        assert done.verdicts == (Verdict.CANCELLED,)
    siblings = {type: row["status"] for type, row in bench.tasks(job).items() if row["stage"] != stage}
    assert siblings == {type: row["status"] for type, row in before.items() if row["stage"] != stage}


@few
@given(jitters=st.lists(st.floats(0, 1), min_size=4, max_size=4), stage=AFTER_DEVELOP)
def test_property_10_a_failed_job_backs_off_longer_each_time_and_fails_at_last(
    bench: Bench, jitters: list[float], stage: str
) -> None:
    """Property 10: a failed job is retried after growing pauses; the task is FAILED only after the last try.

    Where: domain/task.py, ledger/sql/work.py
    """
    job, worker = bench.planned(stage)
    task, ledger, pauses = first(job.id, stage), bench.home.ledger, []
    for failures, jitter in enumerate(jitters, 1):
        (lease,) = bench.claim(worker, [task])
        assert bench.task(f"{job.id}.{stage}")["status"] == "RUNNING"
        pause = retry_delay(failures, jitter)
        assert ledger.fail(worker, task, lease.fence, BROKEN, pause) is Verdict.OK
        pauses.append(pause)
        if pause is not None:
            assert bench.task(f"{job.id}.{stage}")["status"] == "PENDING"
            assert bench.claim(worker, [task]) == (), "it backs off"
            ledger.revive(job.id, [task])  # the pause is over
    growing = [pause for pause in pauses if pause is not None]
    assert growing == sorted(growing)
    assert pauses == [*growing, None]
    told = bench.task(f"{job.id}.{stage}")
    assert (told["status"], told["error"]) == ("FAILED", "EngineAway: the ML service is away")


@few
@given(workers=st.integers(2, 4), jobs=st.integers(1, 3))
def test_property_11_workers_on_one_queue_share_the_jobs(bench: Bench, workers: int, jobs: int) -> None:
    """Property 11: however many workers share a queue, exactly one of them processes each job.

    Where: ledger/postgres/claims.py, transport/redis.py
    """
    made = [bench.planned("objects")[0].id for _ in range(jobs)]
    wanted = [first(job, stage) for job in made for stage in ("objects", "faces", "places")]
    for job in made:
        announce_ready(bench.home, job)
    got: list[str] = []
    names = [bench.worker() for _ in range(workers)]

    def consume(name: str) -> None:
        waiting = [task for task in bench.home.transport.wait(["gpu"], 0) if task in wanted]
        for task in [*waiting, *wanted]:  # each tries all as well: a doubled hint
            leases = bench.claim(name, [task])
            got.extend(lease.task for lease in leases)
            bench.finish(name, leases)

    threads = [threading.Thread(target=consume, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(got) == dict.fromkeys(wanted, 1)


FIELDS = {
    "/videos": {"video_id", "file_path", "file_hash", "duration", "status"},
    "/tasks": {"task_id", "video_id", "task_type", "status", "priority", "dependencies", "started_at", "completed_at",
               "error", "created_at"},
    "/artifacts": {"artifact_id", "asset_id", "artifact_type", "schema_version", "span_start_ms", "span_end_ms",
                   "payload_json", "producer", "model_profile", "config_hash", "input_hash", "run_id", "created_at"},
    "/paths": {"id", "doc", "path"},
}  # fmt: skip


@few
@given(path=st.sampled_from(sorted(FIELDS)), limit=st.integers(1, 100))
def test_property_12_the_endpoints_keep_their_fields(site: Site, video: dict[str, Any], path: str, limit: int) -> None:
    """Property 12: videos, tasks, artifacts and paths keep every field of the document.

    Where: surfaces/api/documents/eioku.py
    """
    asked = {"limit": limit, "asset_id": video["id"]}
    answer = site.http.get(path, params=asked)
    assert answer.status_code == 200
    body = answer.json()
    rows = body if isinstance(body, list) else body["items"]
    assert rows
    assert all(row[field] != "" for row in rows for field in FIELDS[path])


@few
@given(model=st.integers(0, 1000), broken=st.booleans())
def test_property_13_a_model_is_verified_before_it_is_used(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory, model: int, broken: bool
) -> None:
    """Property 13: models are verified by their hashes; a damaged one is refused.

    Where: engines/models/store.py
    """
    models: ModelStore = bench.home.models
    assert {"whisper-base", *SMALL} <= {status.model.id for status in models.ls() if status.present}
    known = [status for status in models.ls() if status.present and status.model.id in SMALL]
    chosen = known[model % len(known)]
    if not broken:
        assert models.checked(chosen.model.id) == chosen.path
        return
    folder = tmp_path_factory.mktemp("models")
    copy = folder / chosen.model.id
    copy.mkdir()
    for file in chosen.path.iterdir():
        (copy / file.name).write_bytes(file.read_bytes()[:-1] + b"!" if file.is_file() else b"")
    with pytest.raises(ModelMissing):
        ModelStore(folder, known=models.known).checked(chosen.model.id)


@few
@given(stage=AFTER_DEVELOP, copies=st.integers(1, 4))
def test_property_14_a_job_of_a_completed_task_is_skipped(bench: Bench, stage: str, copies: int) -> None:
    """Property 14: a second job for a COMPLETED task runs nothing; completing it again succeeds and changes nothing.

    Where: ledger/port.py
    """
    job, worker = bench.planned(stage)
    leases = bench.claim(worker, [first(job.id, stage)])
    bench.finish(worker, leases)
    before = bench.home.ledger.job(job.id)
    for _ in range(copies):
        bench.home.transport.announce("gpu", [leases[0].task])
        assert bench.claim(bench.worker(), [leases[0].task]) == ()
        again = bench.home.ledger.complete(worker, [Finish(leases[0].task, leases[0].fence)])
        assert again.verdicts == (Verdict.OK,)
    assert bench.home.ledger.job(job.id) == before
    bench.redis.lrem("gpu_jobs", 0, f"ml_{leases[0].task}")


@few
@given(finished=st.sets(AFTER_DEVELOP), other=st.booleans())
def test_property_15_a_worker_that_stops_completes_or_hands_back(bench: Bench, finished: set[str], other: bool) -> None:
    """Property 15: a stopping worker takes nothing new, completes what it can and hands the rest to others.

    Where: worker/drain.py, ledger/port.py
    """
    job, worker = bench.planned("objects")
    stages = ("objects", "faces", "places")
    leases = {stage: bench.claim(worker, [first(job.id, stage)])[0] for stage in stages}
    bench.home.ledger.control(worker, JobCommand.DRAIN)
    ready = [first(job.id, "read_text")]
    assert bench.claim(worker, ready) == ()
    assert bench.claim(bench.worker(), ready), "it is another's"
    bench.finish(worker, [leases[stage] for stage in sorted(finished)])
    rest = [leases[stage] for stage in stages if stage not in finished]
    bench.home.ledger.give_back(worker, [(lease.task, lease.fence) for lease in rest], "drained")
    for stage in stages:
        expected = "COMPLETED" if stage in finished else "PENDING"
        assert bench.task(f"{job.id}.{stage}")["status"] == expected
    taken = bench.claim(bench.worker(), [lease.task for lease in rest]) if other else ()
    assert not other or {lease.task for lease in taken} == {lease.task for lease in rest}


def _connections(process: psutil.Process) -> list[Any]:
    return list(process.net_connections("inet"))


@settings(max_examples=2, deadline=None, database=None)
@given(deployment=st.just("server with a worker"))
def test_property_16_services_open_only_what_is_theirs(
    site: Site, video: dict[str, Any], all_servers: Any, deployment: str
) -> None:
    """Property 16: the API consumes no queue, the worker opens no port, and the process with the models no database.

    Where: surfaces/server/app.py, worker/slots.py
    """
    port, database = int(site.url.rpartition(":")[2]), _port(all_servers.postgres.url)
    family = psutil.Process().children(recursive=True)
    api = next(p for p in family if any(c.laddr.port == port and c.status == "LISTEN" for c in _connections(p)))
    worker = next(p for p in api.children() if "worker" in " ".join(p.cmdline()))
    slots = worker.children(recursive=True)
    assert slots, f"{deployment}: what runs models is a process of its own"
    assert not any(c.status == psutil.CONN_LISTEN for p in (worker, *slots) for c in _connections(p))
    assert any(c.raddr and c.raddr.port == database for c in _connections(worker)), "the worker itself does"
    assert not any(c.raddr and c.raddr.port == database for p in slots for c in _connections(p))
    queue = all_servers.valkey.url
    wait_for(lambda: _waits(worker, queue), "the worker never waits for a job")
    assert not _waits(api, queue), "the API waits for none"


def _waits(process: psutil.Process, queue: str) -> bool:
    """Whether a process waits for a list of this server now."""
    blocked = _blocked_clients(queue)
    return any(c.raddr and c.raddr.port == _port(queue) and c.laddr.port in blocked for c in _connections(process))


def _blocked_clients(url: str) -> set[int]:
    """The ports of those who wait for a list."""
    with redis.Redis.from_url(url.replace("valkey:", "redis:"), decode_responses=True) as client:
        return {int(c["addr"].rpartition(":")[2]) for c in client.client_list() if c["cmd"] in ("blmpop", "lmpop")}


def _port(url: str) -> int:
    return int(url.rpartition("@")[2].rpartition(":")[2].partition("/")[0])
