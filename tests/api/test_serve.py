"""`rushes serve` as a process: what it says, what it refuses, and how it ends."""

import json
import signal
import subprocess
from pathlib import Path

import grpc
import httpx
import psutil
import pytest

from rushes.remote.generated import jobs_pb2
from tests.api.kit import DEADLINE, PROGRAM, served, wait_for


def test_sigterm_with_open_streams_ends_it_at_once(home: Path) -> None:
    with served(home) as (process, said):
        assert said["open"] is True
        with httpx.stream("GET", f"{said['url']}/events", timeout=DEADLINE) as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if line == ": live")
            process.send_signal(signal.SIGTERM)
            assert not [line for line in lines if line.startswith("data: ")]
        assert process.wait(DEADLINE) == 128 + signal.SIGTERM


def test_workers_beside_it_do_the_work_and_leave_with_it(home: Path, film: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "rushes.toml").write_text(f'sources = "{film.parent}"')
    with served(home, "--workers", "1", "--slots", "1") as (process, said):
        with httpx.Client(base_url=said["url"], timeout=DEADLINE) as http:
            (added,) = http.post("/api/v1/videos", json={"paths": [str(film)], "only": ["probe"]}).json()
            place = f"/api/v1/jobs/{added['job']['id']}"
            wait_for(lambda: http.get(place).json()["state"] == "completed", "nobody did the work")
        workers = psutil.Process(process.pid).children(recursive=True)
        assert workers
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 128 + signal.SIGINT
        wait_for(lambda: not any(w.is_running() and w.status() != "zombie" for w in workers), "workers were left")


def test_workers_beside_it_end_with_it_though_it_was_killed(home: Path) -> None:
    with served(home, "--workers", "1", "--slots", "1") as (process, _said):
        log = home / "logs" / "worker-1.log"
        wait_for(lambda: log.exists() and '"worker"' in log.read_text(), "the worker never began")
        workers = psutil.Process(process.pid).children(recursive=True)
        assert workers
        process.kill()
        wait_for(lambda: not any(w.is_running() and w.status() != "zombie" for w in workers), "workers were left")


def test_it_is_refused_where_strangers_are_and_with_the_reason(home: Path) -> None:
    argv = [*PROGRAM, "--home", str(home), "serve", "--host", "0.0.0.0", "--port", "0"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 4
    assert "there is no password" in json.loads(done.stdout.splitlines()[-1])["message"]


def test_setup_shows_where_the_first_account_is_made(home: Path) -> None:
    argv = [*PROGRAM, "--home", str(home), "serve", "--host", "0.0.0.0", "--port", "0", "--setup"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=DEADLINE)
    assert (done.returncode, "plain HTTP" in done.stdout) == (4, True)
    with served(home, "--host", "0.0.0.0", "--setup", "--insecure") as (_process, said):
        assert said["open"] is False
        with httpx.Client(base_url=said["url"], timeout=DEADLINE) as http:
            assert http.get(said["setup"]).status_code == 200
            assert http.get("/setup").status_code == 403
            assert http.get("/api/v1/jobs").status_code == 401


def test_grpc_listens_beside_http_and_asks_for_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHES_TOKEN", "a-token-of-the-test")
    monkeypatch.setenv("RUSHES_QUEUES", "default")
    with served(tmp_path / "home", "--grpc", "0") as (process, _said):
        assert process.stdout
        said = json.loads(process.stdout.readline())
        assert said["queues"] == ["default"]
        with grpc.insecure_channel(said["address"]) as channel:
            put = channel.unary_unary(
                "/rushes.v1.JobService/Enqueue",
                jobs_pb2.EnqueueRequest.SerializeToString,
                jobs_pb2.EnqueueResponse.FromString,
            )
            asked = jobs_pb2.EnqueueRequest(queue="default", request_id="one")
            with pytest.raises(grpc.RpcError) as caught:
                put(asked)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            made = put(asked, metadata=[("authorization", "Bearer a-token-of-the-test")])
            assert made.job_id.startswith("job_")
