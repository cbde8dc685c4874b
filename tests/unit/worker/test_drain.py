"""The Spot notice, from a metadata service of our own on loopback; signals in the main thread."""

import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from rushes.worker import drain
from rushes.worker.drain import NOTICE_SECONDS, SpotNotice, notices, signals
from tests.metadata_kit import NOTICE, Metadata, metadata_service


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with metadata_service() as server:
        yield server


def test_as_long_as_nothing_is_planned_there_is_no_notice(metadata: Metadata) -> None:
    watch = SpotNotice(metadata.url)
    assert watch.look() == ""
    assert watch.look() == ""
    assert metadata.tokens == 1, "a token is used again"


def test_a_notice_says_what_and_when(metadata: Metadata) -> None:
    metadata.notice = NOTICE
    assert SpotNotice(metadata.url).look() == "Spot notice: terminate at 2026-11-16T03:00:00Z"


def test_a_notice_that_cannot_be_read_is_a_notice(metadata: Metadata) -> None:
    metadata.notice = b"soon"
    assert SpotNotice(metadata.url).look() == "Spot notice"


def test_an_expired_token_is_asked_for_again(metadata: Metadata) -> None:
    watch = SpotNotice(metadata.url)
    watch.look()
    metadata.tokens += 1
    metadata.notice = NOTICE
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
        metadata.notice = NOTICE
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
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert told == [signal.SIGTERM, signal.SIGINT]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_service_that_is_away_is_told_once_each_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[OSError | tuple[int, bytes]] = [OSError("away"), OSError("away"), (404, b""), OSError("away again")]

    def ask(*_: object) -> tuple[int, bytes]:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    watch = SpotNotice("http://127.0.0.1:1")
    monkeypatch.setattr(watch, "_get", ask)
    with caplog.at_level("WARNING"):
        assert [watch.look() for _ in range(4)] == [""] * 4
    assert len(caplog.records) == 2


def test_between_two_looks_there_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, waited = list[float | None](), threading.Event()

    class Recorded(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            waited.set()
            return super().wait(timeout)

    monkeypatch.setattr(drain, "threading", SimpleNamespace(Event=Recorded, Thread=threading.Thread))
    monkeypatch.setattr(SpotNotice, "look", lambda _: "")
    with notices("http://127.0.0.1:1", lambda *_: None, every=60.0):
        assert waited.wait(60.0), "it looks again and again"
    assert waits == [60.0]
