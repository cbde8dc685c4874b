"""Redis: queues, job ids, payloads, and which worker takes what."""

import json
import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rushes.domain.errors import Refused
from rushes.domain.task_types import TASK_TYPES
from rushes.jobs.control import Reconciler
from rushes.library import Library
from rushes.settings import load
from rushes.telemetry import log
from rushes.wiring.postgres import PostgresSetup
from tests.api.kit import PROGRAM
from tests.conformance.eioku.conftest import Bench
from tests.conformance.eioku.test_tasks import DEFAULTS
from tests.log_lines import logged


@pytest.mark.parametrize("type", TASK_TYPES)
def test_what_runs_a_model_is_in_the_gpu_queue(bench: Bench, type: str) -> None:
    """Job Producer with GPU/CPU Routing: all six types of task go to gpu_jobs.

    Where: stages/registry.py, transport/redis.py
    """
    assert bench.home.specs[TASK_TYPES[type][0]].lane == "gpu"


def test_the_queues_are_named_as_in_the_document(bench: Bench) -> None:
    """Job Producer: the queues are gpu_jobs and cpu_jobs; a job's id is ml_{task_id}.

    Where: transport/redis.py
    """
    bench.redis.flushdb()
    job, _ = bench.planned("objects")
    assert f"ml_{job.id}.objects.00000" in bench.redis.lrange("gpu_jobs", 0, -1)
    other = bench.discover()
    assert f"ml_{other.id}.probe" in bench.redis.lrange("cpu_jobs", 0, -1)


def test_a_job_tells_what_it_is_about(bench: Bench) -> None:
    """Data Flow, job payload: a job has {task_id, task_type, video_id, video_path, config}.

    Where: home.py
    """
    job, _ = bench.planned("objects")
    payload = json.loads(bench.redis.get(f"job:ml_{job.id}.objects.00000"))
    assert payload["task_id"] == f"{job.id}.objects.00000"
    assert payload["task_type"] == "object_detection"
    assert payload["video_id"] == json.loads(bench.home.ledger.job(job.id).facts)["video"]
    assert payload["video_path"] == str(bench.folder / job.name)
    assert payload["config"] == DEFAULTS["object_detection"]
    speech = json.loads(bench.redis.get(f"job:ml_{job.id}.audio"))
    assert speech["task_type"] == "audio", "what only we know keeps our name"


@pytest.mark.parametrize(
    ("mode", "lanes"), [("gpu", {"gpu"}), ("cpu", {"cpu"}), ("auto", {"cpu", "gpu"}), ("", {"cpu", "gpu"})]
)
def test_a_worker_takes_the_queues_of_its_mode(bench: Bench, mode: str, lanes: set[str]) -> None:
    """arq Worker Configuration: GPU_MODE is gpu, cpu or auto (the default) and selects the queues.

    Where: home.py, settings.py
    """
    found = load(bench.home.folder, {"GPU_MODE": mode} if mode else {}).settings.lanes
    with Library(bench.home.folder, options={"lanes": (found, "GPU_MODE")}) as library:
        assert set(library.home.lanes) == lanes


def test_another_mode_is_refused(bench: Bench) -> None:
    """arq Worker Configuration: a worker refuses an invalid GPU_MODE.

    Where: home.py
    """
    with (
        Library(bench.home.folder, options={"lanes": ("tpu", "GPU_MODE")}) as library,
        pytest.raises(Refused, match="unknown lane"),
    ):
        _ = library.home.lanes


def test_losing_redis_loses_no_work(bench: Bench) -> None:
    """Failure Scenarios, Redis data loss: the reconciler enqueues every waiting task again from PostgreSQL.

    Where: jobs/control.py
    """
    job = bench.discover()
    bench.redis.flushdb()
    assert f"ml_{job.id}.probe" not in bench.queued()
    Reconciler(bench.home.ledger, bench.home.transport, bench.home.lane_of).sweep(10_000)
    assert f"ml_{job.id}.probe" in bench.queued()


@pytest.mark.parametrize(
    ("name", "value", "setting"),
    [
        ("DATABASE_URL", "postgresql://eioku:x@db/eioku", "store"),
        ("REDIS_URL", "redis://valkey:6379/0", "hints"),
        ("ML_SERVICE_URL", "http://ml-service:8001", "inference_url"),
        ("GPU_MODE", "cpu", "lanes"),
        ("ARQ_MAX_JOBS", "8", "slots"),
        ("ARQ_JOB_TIMEOUT", "900", "task_seconds"),
        ("LOG_LEVEL", "DEBUG", "log_level"),
        ("MODEL_CACHE_DIR", "/models", "models"),
        ("GPU_CONCURRENCY", "3", "gpu_concurrency"),
        ("REQUIRE_GPU", "true", "require_gpu"),
    ],
)
def test_the_variables_of_the_document_are_read(bench: Bench, name: str, value: str, setting: str) -> None:
    """Environment Variables: the API, the worker and the ML service read the document's variables.

    Where: settings.py
    """
    plain = bench.folder / "no settings"
    plain.mkdir(exist_ok=True)
    assert str(getattr(load(plain, {name: value}).settings, setting)).lower() == value.lower()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("task_seconds", 1800),
        ("gpu_concurrency", 2),
        ("require_gpu", False),
        ("lanes", "auto"),
        ("inference_seconds", 600),  # the ML client: timeout=600
    ],
)
def test_defaults_are_those_of_the_document(bench: Bench, setting: str, value: object) -> None:
    """Environment Variables, defaults: ARQ_JOB_TIMEOUT 1800, GPU_CONCURRENCY 2, REQUIRE_GPU false, GPU_MODE auto.

    Where: settings.py
    """
    plain = bench.folder / "no settings"
    plain.mkdir(exist_ok=True)
    assert getattr(load(plain, {}).settings, setting) == value


@pytest.mark.parametrize(("process", "connections"), [("serve", 20), ("worker", 10)])
def test_the_pools_have_the_size_of_the_document(tmp_path: Path, process: str, connections: int) -> None:
    """High-Level Service Topology: the API has a pool of 20 connections, a worker of 10.

    Where: wiring/postgres.py
    """
    settings = load(tmp_path, {"DATABASE_URL": "postgresql://eioku:eioku_dev@postgres:5432/eioku"}).settings
    assert PostgresSetup(settings, tmp_path, process)._db._size == connections


def test_logs_are_structured(tmp_path: Path) -> None:
    """Error Logging: each line has an ISO 8601 time, a level, the service, the job and the message.

    Where: telemetry.py
    """
    (tmp_path / "broken.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(5000))
    command = [*PROGRAM, "--home", str(tmp_path / "home")]
    (tmp_path / "home").mkdir()
    subprocess.run([*command, "add", "broken.mp4"], check=True, cwd=tmp_path, capture_output=True)
    env = {**os.environ, "LOG_LEVEL": "INFO"}
    worker = subprocess.run([*command, "worker", "--until-idle"], check=False, env=env, capture_output=True)
    lines = [json.loads(line) for line in worker.stderr.splitlines()]
    assert all(datetime.fromisoformat(line["time"]).utcoffset() == timedelta(0) for line in lines)
    assert {line["service"] for line in lines} == {"rushes worker"}
    (failed,) = [line for line in lines if line["level"] == "warning"]
    assert failed["task"] == f"{failed['job']}.probe"
    assert "broken.mp4 cannot be read" in failed["message"]


def test_errors_have_a_stack_trace() -> None:
    """Error Logging: an error has its stack trace.

    Where: telemetry.py
    """
    with logged() as lines:
        try:
            int("seven")
        except ValueError:
            log.exception("the task failed", extra={"job": "job_x"})
    (line,) = lines.all()
    assert (line["level"], line["job"]) == ("error", "job_x")
    assert "ValueError: invalid literal" in line["traceback"]
