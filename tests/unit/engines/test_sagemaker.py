"""Questions to an asynchronous endpoint: each is asked once, whoever works on the task, and its answer is found."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from rushes.bucket.location import BucketLocation
from rushes.domain.errors import (
    AnswerPending,
    EngineAway,
    InferenceFailed,
    NotAllowed,
    RushesError,
    StoreAway,
    Throttled,
)
from rushes.engines import sagemaker
from rushes.engines.in_flight import InFlight
from rushes.engines.port import answered
from rushes.engines.sagemaker import AsynchronousEndpoint
from rushes.engines.wire import call_name

TASK = "job_a.objects.00001"


class Sagemaker:
    """Takes questions, notes them, and answers nothing by itself."""

    def __init__(self, machines: Path) -> None:
        self.machines = machines
        self.asked: list[dict[str, Any]] = []

    def ask(self, operation: str, once: bool, **request: Any) -> dict[str, str]:
        assert (operation, once) == ("invoke_endpoint_async", True)
        self.asked.append(request)
        number = len(self.asked)
        return {"OutputLocation": f"s3://out/{number}.out", "FailureLocation": f"s3://out/{number}-error.out"}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Every bucket."""
    found = MemoryStore()
    monkeypatch.setattr(sagemaker, "connect", lambda _location: found)
    return found


@pytest.fixture
def service(store: MemoryStore, tmp_path: Path) -> Sagemaker:
    return Sagemaker(tmp_path)


def worker(service: Any, in_flight: int = 5, folder: Path | None = None) -> AsynchronousEndpoint:
    """The endpoint as another worker knows it: it remembers nothing, unless it shares a folder."""
    seats = InFlight(folder or service.machines / secrets.token_hex(4), in_flight)
    return AsynchronousEndpoint(service, "films", BucketLocation("in", "asks"), 600, seats)


def pending(ask: Callable[[], object]) -> float:
    with pytest.raises(AnswerPending) as told:
        ask()
    return told.value.delay


def test_a_question_is_asked_once_and_its_answer_found_by_whoever_works_on_the_task(
    service: Sagemaker, store: MemoryStore
) -> None:
    assert pending(lambda: worker(service).answer(TASK, 3, "detect", b"call")) == sagemaker.FIRST_LOOK_SECONDS
    pending(lambda: worker(service).answer(TASK, 4, "detect", b"call"))
    (asked,) = service.asked
    assert asked["InferenceId"] == f"{TASK}.3"
    assert asked["ContentType"] == "application/octet-stream; capability=detect"
    assert bytes(store.get(asked["InputLocation"].removeprefix("s3://in/")).bytes()) == b"call"
    store.put("1.out", b"answer")
    assert worker(service).task_at("out", "1.out") == worker(service).task_at("out", "1-error.out") == TASK
    third = worker(service)
    assert third.answer(TASK, 5, "detect", b"call") == b"answer"
    third.forget(call_name(TASK, "detect", b"call"))
    assert [entry["path"] for page in store.list() for entry in page] == []
    assert third.task_at("out", "1.out") == "", "an event that comes again wakes nobody"


def test_a_worker_that_died_before_it_noted_what_it_asked_is_the_only_reason_to_ask_again(
    service: Sagemaker, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_self: object, address: str, *_: object, **__: object) -> None:
        if "/asks/" in address.removeprefix("s3://in/asks"):
            raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(AsynchronousEndpoint, "_write", die)
        with pytest.raises(KeyboardInterrupt):
            worker(service).answer(TASK, 1, "read", b"call")
    pending(lambda: worker(service).answer(TASK, 2, "read", b"call"))
    pending(lambda: worker(service).answer(TASK, 3, "read", b"call"))
    assert len(service.asked) == 2


def test_the_failure_of_an_endpoint_is_told_in_its_words_and_the_next_attempt_asks_again(
    service: Sagemaker, store: MemoryStore
) -> None:
    pending(lambda: worker(service).answer(TASK, 1, "hear", b"call"))
    store.put("1-error.out", b"out of memory")
    with pytest.raises(InferenceFailed, match="films failed: out of memory"):
        worker(service).answer(TASK, 2, "hear", b"call")
    assert worker(service).task_at("out", "1-error.out") == "", "its events do not end the back-off"
    pending(lambda: worker(service).answer(TASK, 3, "hear", b"call"))
    assert len(service.asked) == 2


def test_an_answer_that_is_too_large_is_a_failure_and_asked_for_again(
    service: Sagemaker, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending(lambda: worker(service).answer(TASK, 1, "hear", b"call"))
    store.put("1.out", b"x" * 1001)
    monkeypatch.setattr(sagemaker, "LARGEST", 1000)
    with pytest.raises(InferenceFailed, match="more than 1000 bytes"):
        worker(service).answer(TASK, 2, "hear", b"call")
    pending(lambda: worker(service).answer(TASK, 3, "hear", b"call"))
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    "error",
    [NotAllowed("no rights"), Throttled("too often"), StoreAway("no network"), RushesError("no such endpoint")],
)
def test_an_endpoint_that_cannot_be_asked_fails_no_work_and_is_no_store_that_is_away(
    error: RushesError, service: Sagemaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    mine = worker(service, in_flight=1)
    with monkeypatch.context() as refusing:
        refusing.setattr(service, "ask", refuse)
        with pytest.raises(EngineAway, match=f"films cannot be asked: {error}"):
            mine.answer(TASK, 1, "hear", b"call")
    pending(lambda: mine.answer(TASK, 2, "hear", b"call"))


def test_an_answer_that_never_comes_is_looked_for_later_and_later_and_is_a_failure_in_the_end(
    service: Sagemaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("rushes.engines.sagemaker.time.time", lambda: now[0])
    delays = []
    for passed in (0, 1, 20, 3000):
        now[0] += passed
        delays.append(pending(lambda: worker(service).answer(TASK, 1, "hear", b"call")))
    assert delays == [5.0, 5.0, 21.0, 300.0]
    now[0] += sagemaker.QUEUED_SECONDS
    with pytest.raises(InferenceFailed, match="did not answer"):
        worker(service).answer(TASK, 1, "hear", b"call")


def test_no_more_questions_are_in_flight_than_allowed_by_all_processes_of_a_worker_together(
    service: Sagemaker, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagemaker, "_LOOK_SECONDS", 0.0)
    first, other = (worker(service, in_flight=2, folder=tmp_path / "one") for _ in range(2))
    for n, mine in enumerate((first, other)):
        pending(lambda n=n, mine=mine: mine.answer(TASK, 1, "hear", b"%d" % n))  # type: ignore[misc]
    for mine in (first, other, worker(service, in_flight=2, folder=tmp_path / "one")):  # the last one was started again
        with pytest.raises(AnswerPending, match="2 questions to films wait"):
            mine.answer(TASK, 1, "hear", b"one too many")
    pending(lambda: worker(service).answer(TASK, 1, "hear", b"on another machine"))
    store.put("1-error.out", b"failed")  # nobody has heard of it yet
    pending(lambda: other.answer(TASK, 1, "hear", b"one too many"))
    with pytest.raises(AnswerPending, match="2 questions to films wait"):
        first.answer(TASK, 1, "hear", b"again too many")
    worker(service).forget(call_name(TASK, "hear", b"1"))  # another machine has used its answer
    pending(lambda: first.answer(TASK, 1, "hear", b"again too many"))
    assert len(service.asked) == 5


def test_a_task_that_is_turned_away_keeps_no_slot_and_comes_again_the_later_the_more_there_are(
    service: Sagemaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: pytest.fail("it waits in its slot"))
    mine = worker(service, in_flight=2)
    for n in range(2):
        pending(lambda n=n: mine.answer(TASK, 1, "hear", b"%d" % n))  # type: ignore[misc]
    delays = [pending(lambda n=n: mine.answer(f"job.{n}", 1, "hear", b"too many")) for n in range(200)]  # type: ignore[misc]
    assert delays[:5] == [5.0, 5.0, 10.0, 10.0, 15.0]
    assert delays[-1] == sagemaker.LAST_LOOK_SECONDS
    assert pending(lambda: mine.answer("job.0", 1, "hear", b"another call of it")) == sagemaker.LAST_LOOK_SECONDS


def test_a_question_whose_worker_died_while_it_asked_takes_its_place_for_a_minute(
    service: Sagemaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagemaker, "_LOOK_SECONDS", 0.0)
    InFlight(tmp_path / "one", 1).enter("the call of a worker that died")
    again = worker(service, in_flight=1, folder=tmp_path / "one")
    with pytest.raises(AnswerPending, match="1 questions to films wait"):
        again.answer(TASK, 1, "hear", b"call")
    monkeypatch.setattr("rushes.engines.in_flight._ASKING_SECONDS", -1.0)
    pending(lambda: again.answer(TASK, 1, "hear", b"call"))
    assert len(service.asked) == 1


def test_a_question_that_is_asked_again_takes_one_place(tmp_path: Path) -> None:
    """Another machine took up its answer, and this one does not know."""
    seats = InFlight(tmp_path, 2)
    assert seats.enter("a")
    seats.asked("a")
    assert seats.enter("a")
    assert seats.enter("b")
    assert not seats.enter("c")


def test_all_calls_are_asked_before_the_first_that_is_pending_ends_the_attempt() -> None:
    asked: list[int] = []

    def call(n: int) -> int:
        asked.append(n)
        if n in (1, 3):
            raise AnswerPending(f"call {n}")
        return n

    found: list[int] = []
    with pytest.raises(AnswerPending, match="call 1"):
        found.extend(answered((lambda n=n: call(n)) for n in range(5)))  # type: ignore[misc]
    assert asked == [0, 1, 2, 3, 4]
    assert list(answered((lambda n=n: n) for n in range(3))) == [0, 1, 2]  # type: ignore[misc]
