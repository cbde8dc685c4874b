"""Questions to an asynchronous endpoint: each is asked once, whoever works on the task, and its answer is found."""

from collections.abc import Callable
from typing import Any

import pytest
from obstore.store import MemoryStore

from rushes.bucket.location import BucketLocation
from rushes.domain.errors import AnswerPending, EngineAway, InferenceFailed
from rushes.engines import sagemaker
from rushes.engines.port import answered
from rushes.engines.sagemaker import AsynchronousEndpoint
from rushes.engines.wire import call_name

TASK = "job_a.objects.00001"


class Sagemaker:
    """Takes questions, notes them, and answers nothing by itself."""

    def __init__(self) -> None:
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
def service(store: MemoryStore) -> Sagemaker:
    return Sagemaker()


def worker(service: Any, in_flight: int = 5) -> AsynchronousEndpoint:
    """The endpoint as another worker knows it: it remembers nothing."""
    return AsynchronousEndpoint(service, "films", BucketLocation("in", "asks"), 600, in_flight)


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


def test_no_more_questions_are_in_flight_than_allowed_until_somebody_has_an_answer(
    service: Sagemaker, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rushes.engines.sagemaker.time.sleep", lambda _seconds: None)
    monkeypatch.setattr(sagemaker, "_TURN_SECONDS", -1.0)
    mine = worker(service, in_flight=2)
    for n in range(2):
        pending(lambda n=n: mine.answer(TASK, 1, "hear", b"%d" % n))  # type: ignore[misc]
    with pytest.raises(EngineAway, match="2 questions to films wait"):
        mine.answer(TASK, 1, "hear", b"one too many")
    store.put("1.out", b"answer")
    monkeypatch.setattr(sagemaker, "_TURN_SECONDS", 60.0)
    pending(lambda: mine.answer(TASK, 1, "hear", b"the next"))
    assert len(service.asked) == 3


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
