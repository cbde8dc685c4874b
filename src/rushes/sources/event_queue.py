"""Storage events by SQS: a message is deleted when its events have been dealt with; a scan finds what is missing."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from rushes.aws.client import Service
from rushes.domain.errors import Refused, StoreAway
from rushes.sources.event_messages import parse_events
from rushes.sources.port import EventMessage
from rushes.telemetry import log

_BATCH = 10
_WAIT_SECONDS = 1  # a request that waits asks every server of SQS, one that does not only some


class EventQueue:
    """The queue that a bucket's notifications go to."""

    def __init__(self, service: Service, queue: str) -> None:
        """`queue` is its name or its URL."""
        self._service, self._queue = service, queue
        self.poison = 0

    def receive(self, wait: int | None = None) -> Sequence[EventMessage]:
        seconds = _WAIT_SECONDS if wait is None else wait
        answer = self._ask("receive_message", MaxNumberOfMessages=_BATCH, WaitTimeSeconds=seconds)
        return tuple(self._parse(answer.get("Messages", ())))

    def waiting(self) -> int:
        name = "ApproximateNumberOfMessages"
        return int(self._ask("get_queue_attributes", AttributeNames=[name])["Attributes"][name])

    def acknowledge(self, messages: Sequence[EventMessage]) -> None:
        """A message that cannot be deleted now comes again and changes nothing."""
        entries = [{"Id": str(n), "ReceiptHandle": one.receipt} for n, one in enumerate(messages)]
        try:
            if entries:
                self._ask("delete_message_batch", Entries=entries)
        except StoreAway as e:
            log.warning("cannot read storage events: %s", e)

    def _parse(self, messages: Sequence[Any]) -> Iterator[EventMessage]:
        for message in messages:
            try:
                yield EventMessage(parse_events(message["Body"]), message["ReceiptHandle"])
            except Refused as e:
                log.warning("deleted a message from the queue of storage events: %s", e)
                self.poison += 1
                self.acknowledge([EventMessage((), message["ReceiptHandle"])])

    def _ask(self, operation: str, **request: Any) -> Any:
        return self._service.ask(operation, QueueUrl=self._url, **request)

    @cached_property
    def _url(self) -> str:
        if "://" in self._queue:
            return self._queue
        return str(self._service.ask("get_queue_url", QueueName=self._queue)["QueueUrl"])
