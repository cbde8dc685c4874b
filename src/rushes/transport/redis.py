"""Hints by Redis or Valkey: a list of job ids per lane, and the position of each, so that none is added twice.

The job id of a task is `ml_` and its id; the list of lane cpu is `cpu_jobs`. What a job is about stands beside it as
JSON (`job:ml_...`) for whoever looks at the queue; workers ask the ledger. Ids are appended at the end and popped from
the front, so that the length of the list tells which positions are gone: a pop writes nothing else. Nothing is
acknowledged: a lost id is announced again when jobs are reconciled.
"""

import contextlib
import itertools
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rushes.domain.errors import StoreAway, StoreRefuses
from rushes.statements import statements
from rushes.telemetry import effect
from rushes.transport.breaker import CircuitBreaker
from rushes.transport.poll import Poll
from rushes.transport.port import Describe

CHECK_SECONDS = 3.0
PAYLOAD_SECONDS = 86_400
_JOB = "ml_"
_SLICE = 5.0  # seconds of one blocking call; a dead connection is noticed after one
_SCRIPTS = statements(Path(__file__).with_name("hints.lua"))


class RedisHints(Poll):
    """Lists of task ids in a Redis 7 or Valkey; whoever waits is woken by the next one."""

    queues = True
    look_seconds = 30.0

    def __init__(self, url: str, name: str = "", describe: Describe = lambda _: {}) -> None:
        """`name` keeps several fleets on one server apart."""
        super().__init__()
        self._server: Any = redis.Redis.from_url(  # its own types speak of awaitables
            url,
            socket_connect_timeout=2.0,
            socket_timeout=_SLICE + 5.0,
            retry=Retry(NoBackoff(), 1),  # an idle connection may have been closed: once more on a new one
            decode_responses=True,
        )
        scripts = (f"{_SCRIPTS['positions']}\n{_SCRIPTS[name]}" for name in ("announce", "missing"))
        self._announce, self._missing = map(self._server.register_script, scripts)
        self._prefix = f"{name}:" if name else ""
        self._describe = describe
        self._waits: set[str] = set()  # a key for each wait that goes on, to end it by
        self._numbers = itertools.count()
        self._token = secrets.token_hex(8)
        self._breaker = CircuitBreaker(redis.RedisError, OSError)

    def announce(self, lane: str, tasks: Sequence[str], attempt: int = 1) -> None:  # noqa: ARG002 - nobody reads it here
        with effect("hint"):
            if tasks:
                self._breaker.call(lambda: self._send(lane, tasks))

    def missing(self, lane: str, tasks: Sequence[str]) -> tuple[str, ...]:
        jobs = [job_id(task) for task in tasks]
        return tuple(map(_task, self._breaker.call(lambda: self._missing(keys=self._keys(lane), args=jobs)) or ()))

    def settle(self, tasks: Sequence[str]) -> None:
        if tasks:
            self._breaker.call(lambda: self._server.unlink(*map(self._payload, tasks)))

    def wait(self, lanes: Sequence[str], seconds: float, n: int = 10) -> tuple[str, ...]:
        end = time.monotonic() + seconds
        with self._waiting() as (me, before):
            taken = self._take(me, lanes, n, min(seconds, _SLICE))
            while not taken and self._woken == before and (left := end - time.monotonic()) > 0:
                self._rest(before, left)
                taken = self._take(me, lanes, n, min(left, _SLICE))
        return taken

    def check(self, _lanes: Sequence[str]) -> str:
        """Send a hint through a lane of its own."""
        lane = f"check-{secrets.token_hex(8)}"
        try:
            self._server.ping()
        except redis.AuthenticationError as e:
            raise StoreRefuses(f"the server refuses the credentials: {e}") from e
        except (redis.RedisError, OSError) as e:
            raise StoreAway(f"the server does not answer: {e}", "Check its address and that it runs.") from e
        self.announce(lane, ["ping"])
        if self.wait((lane,), CHECK_SECONDS) != ("ping",):
            raise StoreAway("a test hint did not arrive")
        return "Redis or Valkey"

    def wake(self) -> None:
        with self._changed:
            super().wake()
            waits = list(self._waits)
        self._breaker.call(lambda: self._end(waits))

    def close(self) -> None:
        self.wake()
        with contextlib.suppress(redis.RedisError, OSError):
            self._server.close()

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[tuple[str, int]]:
        with self._changed:
            me, before = f"{self._prefix}wake:{self._token}:{next(self._numbers)}", self._woken
            self._waits.add(me)
        try:
            yield me, before
        finally:
            with self._changed:
                self._waits.remove(me)

    def _take(self, me: str, lanes: Sequence[str], n: int, seconds: float) -> tuple[str, ...]:
        """What is there; if nothing is, the first that comes."""
        keys = [me, *map(self._list, lanes)]
        pop = ("BLMPOP", seconds) if seconds > 0 else ("LMPOP",)
        found = self._breaker.call(lambda: self._server.execute_command(*pop, len(keys), *keys, "LEFT", "COUNT", n))
        return tuple(map(_task, found[1])) if found and found[0] != me else ()

    def _send(self, lane: str, tasks: Sequence[str]) -> None:
        with self._server.pipeline(transaction=False) as line:
            for task, payload in self._describe(tasks).items():
                line.set(self._payload(task), payload, ex=PAYLOAD_SECONDS)
            line.execute()
        self._announce(keys=self._keys(lane), args=[job_id(task) for task in tasks])

    def _end(self, waits: Sequence[str]) -> None:
        with self._server.pipeline(transaction=False) as line:
            for key in waits:
                line.rpush(key, "wake").expire(key, 60)
            line.execute()

    def _rest(self, before: int, seconds: float) -> None:
        """Do not ask a server that is away again at once."""
        away = min(seconds, self._breaker.rest())
        if away > 0:
            with self._changed:
                self._changed.wait_for(lambda: self._woken != before, away)

    def _list(self, lane: str) -> str:
        return f"{self._prefix}{lane}_jobs"

    def _keys(self, lane: str) -> list[str]:
        """The list and the positions of a lane."""
        return [self._list(lane), f"{self._list(lane)}:positions"]

    def _payload(self, task: str) -> str:
        return f"{self._prefix}job:{job_id(task)}"


def job_id(task: str) -> str:
    """What a task is called in a queue."""
    return _JOB + task


def _task(job: str) -> str:
    return job.removeprefix(_JOB)
