"""Answers of asynchronous engines: the storage event of one makes the task due that waits for it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from rushes.domain.errors import NotFound
from rushes.engines.port import AsynchronousEngine
from rushes.home import Home
from rushes.jobs.control import announce
from rushes.sources.port import StorageEvents


@dataclass(frozen=True, slots=True)
class AnswerEvents:
    """The events of answers, for one worker: any of a fleet may hear of any, twice or never."""

    home: Home
    events: StorageEvents
    engines: Sequence[AsynchronousEngine]

    def hear(self) -> None:
        """Deal with all messages that wait; one is acknowledged when its tasks are due.

        Raises:
            StoreAway: the queue, the bucket or the ledger is away; messages come again.
        """
        while messages := self.events.receive():
            for message in messages:
                for event in message.events:
                    self._wake(event.bucket, event.key)
                self.events.acknowledge([message])

    def _wake(self, bucket: str, key: str) -> None:
        """A task that is not asleep yet looks for its answer seconds later by itself."""
        for task in filter(None, (engine.task_at(bucket, key) for engine in self.engines)):
            with suppress(NotFound):  # its job was deleted
                announce(self.home, self.home.ledger.revive(task.partition(".")[0], [task], delayed=True))
