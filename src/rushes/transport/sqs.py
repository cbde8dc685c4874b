"""Hints by SQS: a standard queue per lane; a message stays until its task is settled, and its loss is harmless.

What SQS answers about a message is advice: a delete that fails only means that somebody looks at a finished task.
"""

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rushes.aws.client import Service
from rushes.domain.errors import RushesError, WrongHome
from rushes.domain.keys import short
from rushes.domain.worker import queue_of, site_of
from rushes.telemetry import effect, log
from rushes.tracing import HEADER, current, of_job, span
from rushes.transport.breaker import CircuitBreaker
from rushes.transport.poll import Poll

VISIBLE_AFTER_SECONDS = 300
LONGEST_WAIT_SECONDS = 20
_BATCH = 10
_TAKE_SECONDS = 1.0  # for those who wait to take what came
_UNSETTLED_SECONDS = 30.0  # settled messages wait for others to be deleted with, ten at once
_KEPT_DAYS = 14
_RECEIVES = 3
_NAME = re.compile(r"[A-Za-z0-9_-]{1,76}")  # of a queue that has a -dlq as well
_ATTRIBUTES = {
    "VisibilityTimeout": str(VISIBLE_AFTER_SECONDS),
    "ReceiveMessageWaitTimeSeconds": str(LONGEST_WAIT_SECONDS),
    "MessageRetentionPeriod": str(_KEPT_DAYS * 86_400),
    "SqsManagedSseEnabled": "true",
}


@dataclass(slots=True, eq=False)
class _Receipt:
    """The right to delete a message or hold it back, and since when it is held."""

    queue: str
    handle: str
    since: float


class SqsHints(Poll):
    """Queues `rushes-{env}-{lane}`; whoever waits gets the next messages, which come as hints of this process."""

    queues = True
    look_seconds = 90.0  # each sweep is nine requests

    def __init__(
        self,
        service: Service,
        env: str = "prod",
        clock: Callable[[], float] = time.monotonic,
        wait_seconds: int = LONGEST_WAIT_SECONDS,
    ) -> None:
        """`env` keeps several fleets in one account apart; the service must allow answers after `wait_seconds`."""
        super().__init__()
        self._longest = max(1, min(LONGEST_WAIT_SECONDS, wait_seconds))
        self._service, self._env, self._clock = service, env, clock
        self._urls: dict[str, str] = {}
        self._held: dict[str, list[_Receipt]] = {}  # task -> its messages
        self._settled: list[_Receipt] = []
        self._waits: dict[str, int] = {}  # lane -> how many wait
        self._until: dict[str, float] = {}  # lane -> when the last of them gives up
        self._receiving: set[str] = set()
        self._breaker = CircuitBreaker(RushesError)
        self.poison = 0

    def announce(self, lane: str, tasks: Sequence[str], attempt: int = 1) -> None:
        """What is bound to a site has no queue: it is told in this process, and found by looking in others."""
        if site_of(lane):
            super().announce(lane, tasks, attempt)
            return
        with effect("hint"):
            entries = [{"Id": str(n), "MessageBody": _message(lane, task, attempt)} for n, task in enumerate(tasks)]
            for some in _tens(entries):
                self._ask("send_message_batch", lane, Entries=some)

    def missing(self, lane: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """All of them when nobody could receive one; of a queue with messages nobody can tell."""
        if site_of(lane):
            return super().missing(lane, tasks)
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
        answer = self._ask("get_queue_attributes", lane, AttributeNames=names) if tasks else None
        counts = answer.get("Attributes", {}) if answer else {"unknown": 1}
        return () if any(int(count) for count in counts.values()) else tuple(tasks)

    def wait(self, lanes: Sequence[str], seconds: float, n: int = 10) -> tuple[str, ...]:
        if seconds <= 0:
            return self._take_now(lanes, n)
        self._delete(len(self._settled))
        with self._changed:
            self._listen(lanes, seconds, n)
            try:
                return super().wait(lanes, seconds, n)
            finally:
                for lane in filter(_has_queue, lanes):
                    self._waits[lane] -= 1
                self._changed.notify_all()

    def keep(self, tasks: Sequence[str]) -> None:
        """Extend the visibility timeout of messages when half of it has passed."""
        late = self._clock() - VISIBLE_AFTER_SECONDS / 2
        with self._changed:
            old = [r for task in tasks for r in self._held.get(task, ()) if r.since <= late]
        self._show(old, VISIBLE_AFTER_SECONDS)
        with self._changed:
            for receipt in old:
                receipt.since = self._clock()

    def settle(self, tasks: Sequence[str]) -> None:
        """Delete messages, ten at once: one that is left when the process dies comes again and is settled again."""
        with self._changed:
            now = self._clock()
            gone = [receipt for task in tasks for receipt in self._held.pop(task, ())]
            for receipt in gone:
                receipt.since = now
            self._settled += gone
            old = bool(self._settled) and self._settled[0].since < now - _UNSETTLED_SECONDS
            count = len(self._settled) if old else len(self._settled) // _BATCH * _BATCH
        self._delete(count)

    def check(self, lanes: Sequence[str]) -> str:
        """Ask each queue how full it is: to send and take would be in the way of others' hints."""
        names, counts = ["ApproximateNumberOfMessages"], []
        for lane in lanes:
            found = self._service.ask("get_queue_attributes", QueueUrl=self._url(lane), AttributeNames=names)
            counts.append(f"{lane} {found['Attributes'][names[0]]}")
        return f"SQS, messages waiting: {', '.join(counts)}"

    def close(self) -> None:
        """Delete what is settled; others see at once what was taken and not settled."""
        self.wake()
        self._delete(len(self._settled))
        with self._changed:
            held, self._held = self._held, {}
        self._show([r for receipts in held.values() for r in receipts], 0)

    def create(self, lanes: Iterable[str]) -> None:
        """Make the queues, each with one for messages that nobody could settle; those that are there stay.

        They stay as they are: to create one again is refused by SQS when an attribute was changed.
        """
        for name in map(self._name, lanes):
            if not self._find(name):
                dead = self._find(f"{name}-dlq") or self._create(f"{name}-dlq", {})
                self._create(name, self._redrive(dead))

    def _find(self, name: str) -> str:
        try:
            return str(self._service.ask("get_queue_url", QueueName=name)["QueueUrl"])
        except WrongHome:
            return ""

    def _create(self, name: str, more: dict[str, str]) -> str:
        return str(self._service.ask("create_queue", QueueName=name, Attributes=_ATTRIBUTES | more)["QueueUrl"])

    def _redrive(self, dead: str) -> dict[str, str]:
        found = self._service.ask("get_queue_attributes", QueueUrl=dead, AttributeNames=["QueueArn"])
        target = {"deadLetterTargetArn": found["Attributes"]["QueueArn"], "maxReceiveCount": _RECEIVES}
        return {"RedrivePolicy": json.dumps(target)}

    # Receiving
    def _take_now(self, lanes: Sequence[str], n: int) -> tuple[str, ...]:
        taken = super().wait(lanes, 0, n)
        for lane in filter(_has_queue, lanes):
            if len(taken) < n:
                taken += tuple(self._receive(lane, 0, n - len(taken)))
        return taken

    def _listen(self, lanes: Sequence[str], seconds: float, n: int) -> None:
        """A thread per lane asks while somebody waits: SQS can be asked for one queue only, and not be interrupted."""
        end = time.monotonic() + seconds
        for lane in filter(_has_queue, lanes):
            self._waits[lane], self._until[lane] = self._waits.get(lane, 0) + 1, end
            if lane not in self._receiving:
                self._receiving.add(lane)
                threading.Thread(target=self._receive_while_wanted, args=(lane, n), daemon=True).start()

    def _receive_while_wanted(self, lane: str, n: int) -> None:
        while True:
            left = max(self._until[lane] - time.monotonic(), 0.0)
            tasks = self._receive(lane, min(self._longest, max(1, math.ceil(left))), n)
            with self._changed:
                self._hints.setdefault(lane, {}).update(dict.fromkeys(tasks))
                self._changed.notify_all()
                seconds = _TAKE_SECONDS if tasks else 0
                self._changed.wait_for(lambda: not self._waits[lane] or not self._hints[lane], seconds)
                if not self._waits[lane]:
                    self._receiving.remove(lane)
                    receipts = [r for task in self._hints.pop(lane) for r in self._held.pop(task, ())]
                    break
                self._changed.wait_for(lambda: not self._waits[lane], max(0.0, self._breaker.rest()))
        self._show(receipts, 0)

    def _receive(self, lane: str, seconds: int, n: int) -> list[str]:
        answer = self._ask("receive_message", lane, MaxNumberOfMessages=min(_BATCH, n), WaitTimeSeconds=seconds) or {}
        queue, now, tasks = self._urls.get(lane, ""), self._clock(), []
        for message in answer.get("Messages", ()):
            receipt, (task, trace) = _Receipt(queue, message["ReceiptHandle"], now), _hint(message["Body"])
            if trace:
                with span("sqs.receive", trace, queue=self._name(lane), task=task):
                    pass  # that it came, and when
            if not task:
                self._drop(receipt)
                continue
            with self._changed:
                self._held.setdefault(task, []).append(receipt)
            tasks.append(task)
        return list(dict.fromkeys(tasks))

    def _drop(self, poison: _Receipt) -> None:
        log.warning("deleted a message that is not a hint from %s", poison.queue)
        with self._changed:
            self.poison += 1
            self._settled.append(poison)

    # Asking
    def _delete(self, count: int) -> None:
        with self._changed:
            gone, self._settled = self._settled[:count], self._settled[count:]
        self._batches("delete_message_batch", gone, {})

    def _show(self, receipts: Sequence[_Receipt], seconds: int) -> None:
        """Let others see these messages after so many seconds."""
        self._batches("change_message_visibility_batch", receipts, {"VisibilityTimeout": seconds})

    def _batches(self, operation: str, receipts: Sequence[_Receipt], more: dict[str, int]) -> None:
        for queue in dict.fromkeys(receipt.queue for receipt in receipts):
            handles = [receipt.handle for receipt in receipts if receipt.queue == queue]
            for some in _tens([{"Id": str(n), "ReceiptHandle": handle, **more} for n, handle in enumerate(handles)]):
                self._breaker.call(partial(self._service.ask, operation, QueueUrl=queue, Entries=some))

    def _ask(self, operation: str, lane: str, **request: Any) -> Any:
        """The answer about a lane's queue, None if there is none."""
        return self._breaker.call(lambda: self._service.ask(operation, QueueUrl=self._url(lane), **request))

    def _url(self, lane: str) -> str:
        if lane not in self._urls:
            self._urls[lane] = self._service.ask("get_queue_url", QueueName=self._name(lane))["QueueUrl"]
        return self._urls[lane]

    def _name(self, lane: str) -> str:
        name = f"rushes-{self._env}-{lane}"
        return name if _NAME.fullmatch(name) else f"rushes-{self._env}-{short(lane)}"


def _has_queue(lane: str) -> bool:
    return not site_of(lane)


def _message(lane: str, task: str, attempt: int) -> str:
    job = task.partition(".")[0]
    doc = {"job_id": job, "queue": queue_of(lane), "attempt": attempt, "task_id": task}
    trace = current() or of_job(job)
    return json.dumps({**doc, HEADER: trace} if trace else doc)


def _hint(body: str) -> tuple[str, str]:
    """The task that a message hints at, "" if it is no hint of ours, and the W3C context that came along."""
    try:
        doc = json.loads(body)
        task, trace = doc["task_id"], doc.get(HEADER, "")
    except (ValueError, TypeError, KeyError, AttributeError):
        return "", ""
    return task if isinstance(task, str) else "", trace if isinstance(trace, str) else ""


def _tens(entries: Sequence[dict[str, Any]]) -> Iterable[Sequence[dict[str, Any]]]:
    return (entries[n : n + _BATCH] for n in range(0, len(entries), _BATCH))
