"""Events of answers: one that cannot be dealt with now holds up no other."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rushes.domain.errors import StoreAway
from rushes.jobs.answers import AnswerEvents
from rushes.sources.port import EventMessage, StorageEvent
from rushes.wiring import open_home


class Queue:
    """Its messages, each shown once."""

    poison = 0

    def __init__(self, *keys: str) -> None:
        self.coming = [EventMessage((StorageEvent("out", key),), key) for key in keys]
        self.acknowledged: list[str] = []

    def receive(self, wait: int | None = None) -> Sequence[EventMessage]:
        coming, self.coming = self.coming, []
        return coming

    def waiting(self) -> int:
        return len(self.coming)

    def acknowledge(self, messages: Sequence[EventMessage]) -> None:
        self.acknowledged += [one.receipt for one in messages]


class Endpoint:
    """Waits for nothing, and cannot look at one key."""

    def task_at(self, _bucket: str, key: str) -> str:
        if key == "bad":
            raise StoreAway("not now")
        return ""

    def answer(self, task: str, fence: int, capability: str, call: bytes) -> bytes:
        raise NotImplementedError

    def forget(self, name: str) -> None:
        raise NotImplementedError


def test_an_answer_that_cannot_be_dealt_with_now_holds_up_no_other(tmp_path: Path) -> None:
    queue = Queue("bad", "good")
    with pytest.raises(StoreAway):
        AnswerEvents(open_home(tmp_path / "home"), [Endpoint()]).hear(queue)
    assert queue.acknowledged == ["good"]
