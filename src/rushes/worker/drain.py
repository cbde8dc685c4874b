"""What makes a worker drain: signals, and the EC2 notice before a Spot instance is taken back."""

import http.client
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from rushes.telemetry import log

METADATA = "http://169.254.169.254"
POLL_SECONDS = 5.0
FIRST_LOOK_SECONDS = 3.0  # that a worker waits at its start for an answer
NOTICE_SECONDS = 120.0  # what EC2 promises, if the notice does not say when
RESERVE_SECONDS = 60.0  # of them, to hand back what is not finished, store everything and leave
AUTO, AWS, NO = "auto", "aws", ("", "off")
_DMI = Path("/sys/class/dmi/id")  # what the machine says of itself
_TOKEN = "/latest/api/token"  # noqa: S105 - a path
_ACTION = "/latest/meta-data/spot/instance-action"
_LIFECYCLE = "/latest/meta-data/autoscaling/target-lifecycle-state"


@contextmanager
def stop_requests(
    request_stop: Callable[[str, float | None], None], spot_notice: str, on_stop: Callable[[int], None]
) -> Iterator[None]:
    """Request a stop for each signal and Spot notice meanwhile, after telling `on_stop` the signal it amounts to."""

    def on_signal(number: int) -> None:
        on_stop(number)
        request_stop(signal.Signals(number).name, None)

    def on_notice(reason: str, within: float) -> None:
        on_stop(signal.SIGTERM)
        request_stop(reason, within)

    with signals(on_signal), notices(spot_notice, on_notice):
        yield


@contextmanager
def signals(on_signal: Callable[[int], None]) -> Iterator[None]:
    """Catch SIGINT and SIGTERM meanwhile; only in the main thread."""

    def catch(number: int, _frame: FrameType | None) -> None:
        on_signal(number)

    before = {s: signal.signal(s, catch) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def notices(base: str, on_notice: Callable[[str, float], None], every: float = POLL_SECONDS) -> Iterator[None]:
    """Watch for a Spot notice meanwhile: its reason, and the seconds that work may still take.

    One that is there already is heard first: a worker that systemd starts again takes nothing more.
    `base`: "auto" = on an EC2 instance (which is known without asking anybody), "off", "aws", or a URL.
    """
    if base in NO or (base == AUTO and not is_ec2()):
        yield
        return
    over, looked = threading.Event(), threading.Event()
    watch = SpotNotice(METADATA if base in (AUTO, AWS) else base)

    def look() -> None:
        while not over.is_set():
            if notice := watch.look():
                on_notice(notice.reason, max(0.0, notice.seconds - RESERVE_SECONDS))
                over.set()
            looked.set()
            over.wait(every)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    looked.wait(FIRST_LOOK_SECONDS)
    try:
        yield
    finally:
        over.set()
        thread.join(every)


def is_ec2(dmi: Path = _DMI) -> bool:
    """Whether this machine says that it is an EC2 instance; those on Xen say it in the version of their firmware."""
    return _line(dmi / "sys_vendor") == "Amazon EC2" or _line(dmi / "bios_version").endswith(".amazon")


def _line(file: Path) -> str:
    with suppress(OSError):
        return file.read_text().strip()
    return ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Why this instance is taken away, and in how many seconds."""

    reason: str
    seconds: float = NOTICE_SECONDS


class SpotNotice:
    """The instance's metadata service (IMDSv2): a token first, then the notice, which is 404 until there is one."""

    def __init__(self, base: str) -> None:
        self._host = urlsplit(base).netloc
        self._token = ""
        self._silent = False

    def look(self) -> Notice | None:
        """What will happen to this instance and when, None if nothing."""
        try:
            action, lifecycle = self._get(_ACTION), self._get(_LIFECYCLE)
        except (OSError, http.client.HTTPException) as e:
            if not self._silent:
                log.warning("cannot read Spot notices from %s: %s", self._host, e)
            self._silent = True
            return None
        self._silent = False
        if action is not None:
            return _notice(action)
        return Notice("the auto scaling group ends this instance") if lifecycle == b"Terminated" else None

    def _get(self, path: str) -> bytes | None:
        """What is there, None if nothing is."""
        status, body = self._ask_with_token(path)
        if status == 401:  # the token has expired
            self._token = ""
            status, body = self._ask_with_token(path)
        return body.strip() if status == 200 else None

    def _ask_with_token(self, path: str) -> tuple[int, bytes]:
        if not self._token:
            _, token = self._ask("PUT", _TOKEN, {"X-aws-ec2-metadata-token-ttl-seconds": "21600"})
            self._token = token.decode("ascii", "replace")
        return self._ask("GET", path, {"X-aws-ec2-metadata-token": self._token})

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._host, timeout=2.0)
        try:
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()


def _notice(body: bytes) -> Notice:
    """A time that is over, or further away than EC2 ever says, means that clocks differ: then its promise counts."""
    try:
        doc = json.loads(body)
        left = (datetime.fromisoformat(str(doc["time"])) - datetime.now(UTC)).total_seconds()
        seconds = left if 0 < left < NOTICE_SECONDS else NOTICE_SECONDS
        return Notice(f"Spot notice: {doc['action']} at {doc['time']}", seconds)
    except (ValueError, KeyError, TypeError):
        return Notice("Spot notice")
