"""Properties of the document that concern its ML service, on a real `rushes ml` in a process of its own."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import simplejpeg
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rushes.engines.wire import pack
from tests.acceptance.conftest import draw
from tests.inference_service import ask, inference_service

MODEL = "efficientdet-lite0"
PROVENANCE = {"run_id", "config_hash", "input_hash", "model_profile", "producer", "producer_version"}
AT_ONCE = 2
few = settings(max_examples=4, deadline=None, phases=[Phase.generate])


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("films") / "short.mp4", 2, (160, 90))


@pytest.fixture(scope="module")
def database() -> Iterator[socket.socket]:
    """Where the settings say that the database, the queue and the broker are; nobody may come."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the service writes its log."""
    return tmp_path_factory.mktemp("ml")


@pytest.fixture(scope="module")
def service(folder: Path, film: Path, database: socket.socket) -> Iterator[str]:
    place = f"127.0.0.1:{database.getsockname()[1]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", f"postgresql://rushes:secret@{place}/rushes")
        patch.setenv("REDIS_URL", f"redis://{place}/0")
        own = {"gpu_concurrency": str(AT_ONCE), "inference_queue": "40", "ml_models": MODEL}
        with inference_service(folder, sources=str(film.parent), **own) as url:
            yield url


def inferred(service: str, what: str, **asked: object) -> dict[str, Any]:
    said = {"Content-Type": "application/json"}
    status, data = ask(service, "POST", f"/infer/{what}", json.dumps(asked).encode(), said)
    assert status == 200, data
    found: dict[str, Any] = json.loads(data)
    return found


@few
@given(
    what=st.sampled_from(["objects", "scenes"]),
    profile=st.sampled_from(["fast", "balanced", "high_quality"]),
    threshold=st.floats(0, 1).map(lambda share: round(share, 3)),
)
def test_property_05_every_answer_of_the_service_says_what_produced_it(
    service: str, film: Path, what: str, profile: str, threshold: float
) -> None:
    """Property 5, on the service: every response names its run, configuration, input, profile, producer and version.

    Where: surfaces/ml/infer.py
    """
    asked: dict[str, object] = {"video_path": str(film), "model_profile": profile}
    asked |= {"threshold": threshold} if what == "scenes" else {"confidence_threshold": threshold, "model_name": MODEL}
    one, again = inferred(service, what, **asked), inferred(service, what, **asked)
    assert all(one[name] for name in PROVENANCE)
    assert one["run_id"] != again["run_id"]
    assert {name: one[name] for name in PROVENANCE - {"run_id"}} == {
        name: again[name] for name in PROVENANCE - {"run_id"}
    }
    assert (one["model_profile"], one["input_hash"]) == (profile, sha256(film.read_bytes()).hexdigest())
    other = inferred(service, what, **{**asked, "model_profile": "fast" if profile != "fast" else "balanced"})
    assert other["config_hash"] != one["config_hash"]


@few
@given(callers=st.integers(1, 20))
def test_property_08_the_service_uses_no_more_models_at_once_than_allowed(service: str, callers: int) -> None:
    """Property 8, on the service: at most two requests use a model at once; the others wait their turn.

    Where: library/inference/gate.py
    """
    jpeg = simplejpeg.encode_jpeg(np.zeros((64, 64, 3), np.uint8), 80, "RGB")
    call = pack({"what": "objects", "model": MODEL, "least": 0.4, "shapes": [None]}, [jpeg])
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(ask(service, "POST", "/v1/detect", call)[0]))
        for _ in range(callers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * callers
    told = ask(service, "GET", "/metrics")[1].decode().splitlines()
    assert {f"rushes_inference_models_in_use_max {most}" for most in (1, AT_ONCE)} & {*told}
    assert "rushes_inference_models_in_use 0" in told


@pytest.mark.parametrize(
    ("env", "told"),
    [({"RUSHES_ML_MODELS": "dragon"}, "dragon"), ({"REQUIRE_GPU": "true", "PATH": "/nowhere"}, "no GPU was found")],
)
def test_property_13_the_service_does_not_start_without_what_it_needs(
    tmp_path: Path, env: dict[str, str], told: str
) -> None:
    """Property 13, on the service: it does not start without a model or a GPU that it requires.

    Where: library/inference/service.py
    """
    argv = [sys.executable, "-m", "rushes", "ml", "--port", "0"]
    given_env = {**os.environ, "RUSHES_ML_MODELS": MODEL, **env}
    done = subprocess.run(argv, env=given_env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert told in done.stderr
    assert "http" not in done.stdout, "it never listens"


def test_property_13_the_service_logs_whether_there_is_a_gpu(service: str, folder: Path) -> None:
    """Property 13, GPU availability: the service detects it, logs it at startup and reports it at `/health`.

    Where: library/inference/service.py, engines/devices.py
    """
    health = json.loads(ask(service, "GET", "/health")[1])
    assert health["gpu_available"] is False, "there is none here"
    lines = [json.loads(line) for line in (folder / "ml.log").read_text().splitlines() if line.startswith("{")]
    assert [line["level"] for line in lines if "no GPU was found" in line["message"]] == ["warning"]


def test_property_16_the_service_reaches_no_database(service: str, film: Path, database: socket.socket) -> None:
    """Property 16, on the service: it connects to no database and no queue, and opens no ledger.

    Where: surfaces/ml/app.py
    """
    assert inferred(service, "objects", video_path=str(film), model_name=MODEL)["producer"] == "rushes.objects"
    with pytest.raises(BlockingIOError):
        database.accept()
    port = int(service.rpartition(":")[2])
    (process,) = [
        child
        for child in psutil.Process().children()
        if any(c.laddr.port == port and c.status == psutil.CONN_LISTEN for c in child.net_connections("inet"))
    ]
    listening = {c.laddr.port for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert listening == {port}
    assert not [file.path for file in process.open_files() if "sqlite" in file.path]
