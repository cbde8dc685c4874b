"""Answers of asynchronous engines: their storage event makes the waiting task ready."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from rushes.domain.errors import NotFound, TryAgain
from rushes.engines.port import AsynchronousEngine
from rushes.home import Home
from rushes.jobs.control import announce
from rushes.sources.port import StorageEvents


@dataclass(frozen=True, slots=True)
class AnswerEvents:
    """The events of answers, for one process: any of a fleet may hear of any, twice or never."""

    home: Home
    engines: Sequence[AsynchronousEngine]

    def hear(self, events: StorageEvents) -> None:
        """Deal with all messages that wait; one is acknowledged when its tasks are due.

        Raises:
            TryAgain: the queue, the bucket or the ledger is away, or another worker has the film; messages come again.
        """
        away: TryAgain | None = None
        while not away and (messages := events.receive()):
            for message in messages:
                try:
                    for event in message.events:
                        self.wake(event.bucket, event.key)
                except TryAgain as e:
                    away = e  # the others may be about something else
                else:
                    events.acknowledge([message])
        if away:
            raise away

    def wake(self, bucket: str, key: str) -> None:
        """A key was written: the task that waits for it is due; one that is not asleep yet looks seconds later.

        Raises:
            TryAgain: the bucket or the ledger is away, or another worker has the film.
        """
        for task in filter(None, (engine.task_at(bucket, key) for engine in self.engines)):
            with suppress(NotFound):  # its job was deleted
                announce(self.home, self.home.ledger.revive(task.partition(".")[0], [task], delayed=True))
