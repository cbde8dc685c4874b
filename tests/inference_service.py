"""A real inference service in a process of its own, and a proxy before it that behaves badly."""

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

DEADLINE = 240.0
FAST = (
    "whisper-tiny.en,whisper-base,ppocr-v6-tiny,efficientdet-lite0,yunet-sface,efficientnet-lite0,fastdepth,minilm-l6"
)


@contextmanager
def inference_service(folder: Path, **env: str) -> Iterator[str]:
    """The address of a service that has loaded its models; `env` are settings."""
    settings = {f"RUSHES_{name.upper()}": value for name, value in {"ml_models": FAST, **env}.items()}
    argv = [sys.executable, "-m", "rushes", "ml", "--port", "0"]
    with (folder / "ml.log").open("wb") as log:
        process = subprocess.Popen(argv, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=log, cwd=folder)
    try:
        assert process.stdout
        url = process.stdout.readline().decode().strip()
        assert url.startswith("http://"), (folder / "ml.log").read_text()
        _wait_until_healthy(url)
        yield url
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout
        process.stdout.close()


def _wait_until_healthy(url: str) -> None:
    over = time.monotonic() + DEADLINE
    while True:
        try:
            status, _ = ask(url, "GET", "/health")
        except OSError:
            assert time.monotonic() < over, "the service does not listen"
            time.sleep(0.02)
        else:
            assert status == 200
            return


def ask(
    url: str, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """One request: status and body."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=DEADLINE)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class BadProxy(ThreadingHTTPServer):
    """Hands calls on, each in its manner: well, 500, cut, stall; after the last it is gone."""

    daemon_threads = True

    def __init__(self, url: str, manners: Sequence[str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.before, self.over, self.lock = url, threading.Event(), threading.Lock()
        self.manners, self.done = list(manners), list[str]()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def manner(self) -> str:
        """How the next call is handled."""
        with self.lock:
            found = self.manners.pop(0) if self.manners else "gone"
            self.done.append(found)
            return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BadProxy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        manner = self.server.manner()
        self.close_connection = manner != "well"
        if manner == "stall":
            self.server.over.wait(DEADLINE)
        if manner in ("stall", "gone"):
            return
        status, data = ask(self.server.before, "POST", self.path, body, {"Content-Type": "application/octet-stream"})
        self.send_response(500 if manner == "500" else status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if manner == "cut" else data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def bad_proxy(url: str, manners: Sequence[str]) -> Iterator[BadProxy]:
    """A proxy before a service."""
    server = BadProxy(url, manners)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
