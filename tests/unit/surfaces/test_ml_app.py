"""The inference service as an application: what is sent is bounded, and nobody waits for himself."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rushes.engines.devices import Gpu
from rushes.engines.wire import pack
from rushes.library.inference import Cancelled, InferenceService
from rushes.library.inference import service as inference
from rushes.settings import Settings
from rushes.surfaces.cli.main import main
from rushes.surfaces.http.bodies import BODY_BYTES
from rushes.surfaces.ml.app import create

HERE = "http://127.0.0.1:8001"
DEADLINE = 20


def application(folder: Path, bound: str = "127.0.0.1", **more: Any) -> FastAPI:
    """A service without models."""
    settings = Settings(models=str(folder), sources=str(folder), inference_queue=1, **more)
    return create(InferenceService(settings), settings, bound)


@pytest.mark.parametrize("path", ["/infer/scenes", "/invocations"])
def test_a_question_has_a_largest_size(path: str, tmp_path: Path) -> None:
    client = TestClient(application(tmp_path), HERE)
    told = client.post(path, content=b" " * (BODY_BYTES + 1), headers={"Content-Type": "application/json"})
    assert told.status_code == 413
    call = client.post("/v1/embed", content=b" " * (BODY_BYTES + 1))
    assert call.status_code == 400, "calls are larger"


@pytest.mark.parametrize(
    ("bound", "settings", "status"),
    [
        ("127.0.0.1", {}, 421),
        ("127.0.0.1", {"hosts": "films.example"}, 200),
        ("127.0.0.1", {"inference_token": "secret"}, 200),
        ("0.0.0.0", {}, 200),
        ("0.0.0.0", {"hosts": "other.example"}, 421),
    ],
)
def test_a_name_that_is_not_ours_is_refused_where_nothing_else_is_asked(
    bound: str, settings: dict[str, str], status: int, tmp_path: Path
) -> None:
    app = application(tmp_path, bound, **settings)
    assert TestClient(app, "http://films.example:8001").get("/health").status_code == status
    for known in (HERE, "http://localhost:8001"):
        assert TestClient(app, known).get("/health").status_code == 200


def test_who_lacks_the_token_learns_how_the_service_is_and_what_it_could_be_asked_and_nothing_else(
    tmp_path: Path,
) -> None:
    app = application(tmp_path, inference_token="right")
    client, paths = TestClient(app, HERE), app.openapi()["paths"]
    asked = [(method, path.format(capability="embed")) for path, some in paths.items() for method in some]
    assert len(asked) == 11
    for method, path in asked:
        told = [
            client.request(method, path, headers={"Authorization": f"Bearer {token}"}).status_code
            for token in ("", "wrong", "right")
        ]
        if path in ("/health", "/ping"):
            assert 401 not in told, path
        else:
            assert told[:2] == [401, 401], path
            assert told[2] != 401, path
    assert [client.get(path).status_code for path in ("/", "/docs", "/openapi.json")] == [200] * 3


def test_nobody_elsewhere_is_let_in_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InferenceService, "start", lambda *_: pytest.fail("it starts"))
    told = CliRunner().invoke(main, ["ml", "--host", "0.0.0.0"])
    assert (told.exit_code, "RUSHES_INFERENCE_TOKEN" in told.stderr) == (4, True)


def test_films_that_become_3d_ask_models_though_the_queue_is_short(tmp_path: Path) -> None:
    app = application(tmp_path)
    client, told, both = TestClient(app, HERE), list[str](), threading.Barrier(2)

    def convert(*_: object) -> None:
        both.wait(20)
        with lock:
            answer = client.post("/v1/embed", content=pack({"model": "m", "texts": ["a"]}))
        told.append(answer.json()["code"])
        both.wait(20)

    lock = threading.Lock()
    app.state.stereo.convert = convert
    asked = {"input_uri": f"{tmp_path}/a.mp4", "output_uri": f"{tmp_path}/b.mp4"}
    callers = [threading.Thread(target=client.post, args=("/invocations",), kwargs={"json": asked}) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert told == ["ModelMissing"] * 2, "asked and answered, not told to come later"


def test_films_that_become_3d_have_a_queue_of_their_own(tmp_path: Path) -> None:
    app = application(tmp_path)
    with ExitStack() as places:
        for _ in range(app.state.stereo.queue.bound):
            places.enter_context(app.state.stereo.queue.enter())
        asked = {"input_uri": f"{tmp_path}/a.mp4", "output_uri": f"{tmp_path}/b.mp4"}
        told = TestClient(app, HERE).post("/invocations", json=asked)
        assert (told.status_code, told.headers["Retry-After"]) == (429, "1")


def test_health_asks_the_gpus_now_and_then_and_never_in_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = list[str]()

    def gpus() -> tuple[Gpu, ...]:
        threads.append(threading.current_thread().name)
        return (Gpu(0, "made up", 1000, 10 * len(threads)),)

    monkeypatch.setattr(inference, "gpus", gpus)
    client = TestClient(application(tmp_path), HERE)
    assert len(threads) == 1
    found = [client.get("/health").json()["gpu_memory_used_mb"] for _ in range(3)]
    assert client.get("/ping").status_code == 503
    assert found == [20, 20, 20]
    assert "worker thread" in threads[1]


def test_who_hangs_up_is_worked_for_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = application(tmp_path)
    begun, given_up = threading.Event(), threading.Event()

    def answer(_capability: str, _call: bytes, check: Callable[[], None]) -> bytes:
        begun.set()
        over = time.monotonic() + DEADLINE
        while time.monotonic() < over:
            try:
                check()
            except Cancelled:
                given_up.set()
                raise
        return b""

    async def hang_up() -> None:
        messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, Any]:
            if message := next(messages, None):
                return message
            await asyncio.to_thread(begun.wait, DEADLINE)
            return {"type": "http.disconnect"}

        async def send(_message: Any) -> None:
            """Nobody reads it."""

        headers = [(b"host", b"127.0.0.1")]
        about = {"type": "http", "http_version": "1.1", "method": "POST", "path": "/v1/embed", "headers": headers}
        await app({**about, "query_string": b"", "scheme": "http", "client": None, "server": None}, receive, send)

    monkeypatch.setattr(app.state.service, "answer", answer)
    with ThreadPoolExecutor(1) as elsewhere:  # this thread may have a loop: that of a browser's driver
        elsewhere.submit(asyncio.run, hang_up()).result()
    assert given_up.is_set()
    assert app.state.service.queue.inside == 0
