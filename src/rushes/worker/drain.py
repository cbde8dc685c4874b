"""Who tells a worker to stop: signals, and the notice that EC2 gives before it takes a Spot instance back."""

import http.client
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from urllib.parse import urlsplit

from rushes.telemetry import log

METADATA = "http://169.254.169.254"
POLL_SECONDS = 5.0
NOTICE_SECONDS = 100.0  # EC2 promises two minutes; a poll and the way out take some
_TOKEN = "/latest/api/token"  # noqa: S105 - a path
_ACTION = "/latest/meta-data/spot/instance-action"


@contextmanager
def signals(told: Callable[[int], None]) -> Iterator[None]:
    """Hear SIGINT and SIGTERM for a while; only in the main thread."""

    def hear(number: int, _frame: FrameType | None) -> None:
        told(number)

    before = {s: signal.signal(s, hear) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def notices(base: str, told: Callable[[str, float], None], every: float = POLL_SECONDS) -> Iterator[None]:
    """Hear the Spot notice for a while: why, and how many seconds are left. `base`: "" = no, "aws", or a URL."""
    if not base:
        yield
        return
    over = threading.Event()
    watch = SpotNotice(METADATA if base == "aws" else base)

    def look() -> None:
        while not over.is_set():
            if why := watch.look():
                told(why, NOTICE_SECONDS)
                return
            over.wait(every)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(every)


class SpotNotice:
    """The instance's metadata service (IMDSv2): a token first, then the notice, which is 404 until there is one."""

    def __init__(self, base: str) -> None:
        self._host = urlsplit(base).netloc
        self._token = ""
        self._silent = False

    def look(self) -> str:
        """What will happen to this instance and when, "" if nothing."""
        try:
            status, body = self._get()
            if status == 401:  # the token has expired
                self._token = ""
                status, body = self._get()
        except (OSError, http.client.HTTPException) as e:
            if not self._silent:
                log.warning("cannot read Spot notices from %s: %s", self._host, e)
            self._silent = True
            return ""
        self._silent = False
        return _notice(body) if status == 200 else ""

    def _get(self) -> tuple[int, bytes]:
        if not self._token:
            _, token = self._ask("PUT", _TOKEN, {"X-aws-ec2-metadata-token-ttl-seconds": "21600"})
            self._token = token.decode("ascii", "replace")
        return self._ask("GET", _ACTION, {"X-aws-ec2-metadata-token": self._token})

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        line = http.client.HTTPConnection(self._host, timeout=2.0)
        try:
            line.request(method, path, headers=headers)
            reply = line.getresponse()
            return reply.status, reply.read()
        finally:
            line.close()


def _notice(body: bytes) -> str:
    try:
        doc = json.loads(body)
        return f"Spot notice: {doc['action']} at {doc['time']}"
    except (ValueError, KeyError, TypeError):
        return "Spot notice"
