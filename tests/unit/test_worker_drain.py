"""The Spot notice, from a metadata service of our own on loopback; signals in the main thread."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rushes.worker.drain import NOTICE_SECONDS, SpotNotice, notices, signals

NOTICE = {"action": "terminate", "time": "2026-11-16T03:00:00Z"}


class Metadata(ThreadingHTTPServer):
    """IMDSv2 as its documentation says: no token, no answer; 404 as long as nothing is planned."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.notice: bytes | None = None
        self.tokens = 0
        self.asked = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    server: Metadata

    def do_PUT(self) -> None:
        good = self.path == "/latest/api/token" and int(self.headers["X-aws-ec2-metadata-token-ttl-seconds"]) > 0
        self.server.tokens += 1
        self._say(200 if good else 400, f"token {self.server.tokens}".encode())

    def do_GET(self) -> None:
        self.server.asked.set()
        if self.headers["X-aws-ec2-metadata-token"] != f"token {self.server.tokens}":
            self._say(401, b"")
        elif self.path != "/latest/meta-data/spot/instance-action" or self.server.notice is None:
            self._say(404, b"")
        else:
            self._say(200, self.server.notice)

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with Metadata() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def test_as_long_as_nothing_is_planned_there_is_no_notice(metadata: Metadata) -> None:
    watch = SpotNotice(metadata.url)
    assert watch.look() == ""
    assert watch.look() == ""
    assert metadata.tokens == 1, "a token is used again"


def test_a_notice_says_what_and_when(metadata: Metadata) -> None:
    metadata.notice = json.dumps(NOTICE).encode()
    assert SpotNotice(metadata.url).look() == "Spot notice: terminate at 2026-11-16T03:00:00Z"


def test_a_notice_that_cannot_be_read_is_a_notice(metadata: Metadata) -> None:
    metadata.notice = b"soon"
    assert SpotNotice(metadata.url).look() == "Spot notice"


def test_an_expired_token_is_asked_for_again(metadata: Metadata) -> None:
    watch = SpotNotice(metadata.url)
    watch.look()
    metadata.tokens += 1
    metadata.notice = json.dumps(NOTICE).encode()
    assert watch.look().startswith("Spot notice: terminate")


def test_a_service_that_is_away_is_no_notice(metadata: Metadata) -> None:
    metadata.shutdown()
    metadata.server_close()
    assert SpotNotice(metadata.url).look() == ""


def test_whoever_watches_is_told_once_and_with_less_time_than_ec2_promises(metadata: Metadata) -> None:
    told: list[tuple[str, float]] = []
    heard = threading.Event()

    def hear(why: str, within: float) -> None:
        told.append((why, within))
        heard.set()

    with notices(metadata.url, hear, every=0.01):
        assert metadata.asked.wait(60)
        assert told == []
        metadata.notice = json.dumps(NOTICE).encode()
        assert heard.wait(60)
    assert told == [("Spot notice: terminate at 2026-11-16T03:00:00Z", NOTICE_SECONDS)]
    assert NOTICE_SECONDS < 120


def test_nobody_is_asked_unless_it_is_configured(metadata: Metadata) -> None:
    with notices("", lambda _why, _within: None, every=0.01):
        pass
    assert not metadata.asked.is_set()


def test_signals_are_heard_and_handed_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    told: list[int] = []
    with signals(told.append):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert told == [signal.SIGTERM, signal.SIGINT]
    assert signal.getsignal(signal.SIGTERM) == before
