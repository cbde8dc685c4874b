"""The Spot notice, from a metadata service of our own on loopback; signals in the main thread."""

import json
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from rushes.worker import drain
from rushes.worker.drain import (
    FIRST_LOOK_SECONDS,
    NOTICE_SECONDS,
    RESERVE_SECONDS,
    Notice,
    SpotNotice,
    is_ec2,
    notices,
    signals,
)
from tests.metadata_kit import NOTICE, Metadata, metadata_service


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with metadata_service() as server:
        yield server


def test_as_long_as_nothing_is_planned_there_is_no_notice(metadata: Metadata) -> None:
    watch = SpotNotice(metadata.url)
    metadata.lifecycle = b"InService"
    assert watch.look() is None
    assert watch.look() is None
    assert metadata.tokens == 1, "a token is used again"


def test_a_notice_says_what_and_when(metadata: Metadata) -> None:
    metadata.notice = NOTICE
    found = SpotNotice(metadata.url).look()
    assert found == Notice("Spot notice: terminate at 2026-11-16T03:00:00Z", NOTICE_SECONDS)  # over: clocks differ


def test_a_notice_says_how_long_is_left(metadata: Metadata) -> None:
    at = datetime.now(UTC) + timedelta(seconds=25)
    metadata.notice = json.dumps({"action": "stop", "time": at.isoformat()}).encode()
    found = SpotNotice(metadata.url).look()
    assert found
    assert 0 < found.seconds <= 25


def test_the_end_of_an_auto_scaling_group_is_a_notice(metadata: Metadata) -> None:
    metadata.lifecycle = b"Terminated"
    assert SpotNotice(metadata.url).look() == Notice("the auto scaling group ends this instance")


def test_a_notice_that_cannot_be_read_is_a_notice(metadata: Metadata) -> None:
    metadata.notice = b"soon"
    assert SpotNotice(metadata.url).look() == Notice("Spot notice")


def test_an_expired_token_is_asked_for_again(metadata: Metadata) -> None:
    watch = SpotNotice(metadata.url)
    watch.look()
    metadata.tokens += 1
    metadata.notice = NOTICE
    found = watch.look()
    assert found
    assert found.reason.startswith("Spot notice: terminate")


def test_a_service_that_is_away_is_no_notice(metadata: Metadata) -> None:
    metadata.shutdown()
    metadata.server_close()
    assert SpotNotice(metadata.url).look() is None


def test_whoever_watches_is_told_once_and_with_less_time_than_ec2_promises(metadata: Metadata) -> None:
    told: list[tuple[str, float]] = []
    heard = threading.Event()

    def hear(why: str, within: float) -> None:
        told.append((why, within))
        heard.set()

    with notices(metadata.url, hear, every=0.01):
        assert metadata.asked.wait(60)
        assert told == []
        metadata.notice = NOTICE
        assert heard.wait(60)
    assert told == [("Spot notice: terminate at 2026-11-16T03:00:00Z", NOTICE_SECONDS - RESERVE_SECONDS)]


def test_a_notice_that_is_there_at_the_start_is_heard_before_anything_is_claimed(metadata: Metadata) -> None:
    metadata.notice = NOTICE
    told: list[str] = []
    with notices(metadata.url, lambda why, _within: told.append(why)):
        assert len(told) == 1


@pytest.mark.parametrize(
    ("vendor", "firmware", "on_ec2"),
    [("Amazon EC2\n", "1.0\n", True), ("Xen\n", "4.11.amazon\n", True), ("QEMU\n", "1.16\n", False)],
)
def test_a_machine_that_is_on_ec2_knows_it_without_asking(
    tmp_path: Path, vendor: str, firmware: str, on_ec2: bool
) -> None:
    assert not is_ec2(tmp_path)
    (tmp_path / "sys_vendor").write_text(vendor)
    (tmp_path / "bios_version").write_text(firmware)
    assert is_ec2(tmp_path) == on_ec2


@pytest.mark.parametrize("setting", ["", "off"])
def test_nobody_is_asked_where_it_is_off(metadata: Metadata, setting: str) -> None:
    with notices(setting, lambda _why, _within: None, every=0.01):
        pass
    assert not metadata.asked.is_set()


def test_signals_are_heard_and_handed_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    told: list[int] = []
    with signals(told.append):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert told == [signal.SIGTERM, signal.SIGINT]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_service_that_is_away_is_told_once_each_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [OSError("away"), OSError("away"), None, None, OSError("away again")]  # a good look asks twice

    def ask(*_: object) -> bytes | None:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    watch = SpotNotice("http://127.0.0.1:1")
    monkeypatch.setattr(watch, "_get", ask)
    with caplog.at_level("WARNING"):
        assert [watch.look() for _ in range(4)] == [None] * 4
    assert len(caplog.records) == 2


def test_between_two_looks_there_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, waited = list[float | None](), threading.Event()

    class Recorded(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if timeout != FIRST_LOOK_SECONDS:
                waits.append(timeout)
                waited.set()
            return super().wait(timeout)

    monkeypatch.setattr(drain, "threading", SimpleNamespace(Event=Recorded, Thread=threading.Thread))
    monkeypatch.setattr(SpotNotice, "look", lambda _: None)
    with notices("http://127.0.0.1:1", lambda *_: None, every=60.0):
        assert waited.wait(60.0), "it looks again and again"
    assert waits == [60.0]
