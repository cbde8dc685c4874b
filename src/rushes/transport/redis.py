"""Hints by Redis or Valkey: a list of task ids per lane and a set beside it, so that none waits twice.

Nothing is acknowledged: an id that is lost is announced again by whoever reconciles.
"""

import contextlib
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rushes.domain.errors import StoreAway, StoreRefuses
from rushes.telemetry import effect, log

CHECK_SECONDS = 3.0
_SLICE = 5.0  # seconds of one blocking call; a dead connection is noticed after one
_REST = 1.0  # seconds without a try after the server was away

# A worker that died between taking an id and striking it out leaves it in the set: an empty list empties the set.
_ANNOUNCE = """
if redis.call('LLEN', KEYS[1]) == 0 then redis.call('DEL', KEYS[2]) end
for _, task in ipairs(ARGV) do
  if redis.call('SADD', KEYS[2], task) == 1 then redis.call('RPUSH', KEYS[1], task) end
end
"""

# Taken and struck out in one trip: to name 500 ids again took as long as to claim them.
_TAKE = """
for n = 1, #KEYS, 2 do
  local tasks = redis.call('LPOP', KEYS[n], ARGV[1])
  if tasks then
    redis.call('SREM', KEYS[n + 1], unpack(tasks))
    return tasks
  end
end
return {}
"""

# As when announcing, for a list that is never empty: where the two differ, the set is made anew from the list.
_MISSING = """
local count = redis.call('LLEN', KEYS[1])
if redis.call('SCARD', KEYS[2]) ~= count then
  redis.call('DEL', KEYS[2])
  for first = 0, count - 1, 1000 do
    redis.call('SADD', KEYS[2], unpack(redis.call('LRANGE', KEYS[1], first, first + 999)))
  end
end
local missing = {}
for _, task in ipairs(ARGV) do
  if redis.call('SISMEMBER', KEYS[2], task) == 0 then table.insert(missing, task) end
end
return missing
"""


class RedisHints:
    """Lists of task ids in a Redis 7 or Valkey; whoever waits is woken by the next one."""

    queues = True
    look_seconds = 5.0

    def __init__(self, url: str, name: str = "rushes") -> None:
        """`name` keeps several fleets on one server apart."""
        self._server: Any = redis.Redis.from_url(  # its own types speak of awaitables
            url,
            socket_connect_timeout=2.0,
            socket_timeout=_SLICE + 5.0,
            retry=Retry(NoBackoff(), 1),  # an idle connection may have been closed: once more on a new one
            decode_responses=True,
        )
        scripts = (_ANNOUNCE, _TAKE, _MISSING)
        self._announce, self._pop, self._missing = map(self._server.register_script, scripts)
        self._name = name
        self._changed = threading.Condition()
        self._woken = 0
        self._waits: set[str] = set()  # a key for each wait that goes on, to end it by
        self._numbers = itertools.count()
        self._token = secrets.token_hex(8)
        self._away_until = 0.0

    def announce(self, lane: str, tasks: Sequence[str]) -> None:
        """As the port says."""
        with effect("hint"):
            if tasks:
                self._ask(lambda: self._announce(keys=[self._list(lane), self._set(lane)], args=list(tasks)))

    def missing(self, lane: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """As the port says."""
        keys = [self._list(lane), self._set(lane)]
        return tuple(self._ask(lambda: self._missing(keys=keys, args=list(tasks))) or ())

    def wait(self, lanes: Sequence[str], seconds: float, n: int = 10) -> tuple[str, ...]:
        """As the port says."""
        end = time.monotonic() + seconds
        with self._waiting() as (me, before):
            taken = self._take(me, lanes, n, min(seconds, _SLICE))
            while not taken and self._woken == before and (left := end - time.monotonic()) > 0:
                self._rest(before, left)
                taken = self._take(me, lanes, n, min(left, _SLICE))
        return taken

    def keep(self, tasks: Sequence[str]) -> None:
        """Nothing is handed out twice."""

    def settle(self, tasks: Sequence[str]) -> None:
        """Nothing is handed out twice."""

    def check(self, _lanes: Sequence[str]) -> str:
        """Send a hint through a lane of its own."""
        lane = f"check-{secrets.token_hex(8)}"
        try:
            self._server.ping()
        except redis.AuthenticationError as e:
            raise StoreRefuses(f"it refuses us: {e}") from e
        except (redis.RedisError, OSError) as e:
            raise StoreAway(f"it does not answer: {e}", "Check that the server is there.") from e
        self.announce(lane, ["well"])
        if self.wait((lane,), CHECK_SECONDS) != ("well",):
            raise StoreAway("what is told does not come through")
        return "Redis or Valkey"

    def wake(self) -> None:
        """As the port says."""
        with self._changed:
            self._woken += 1
            self._changed.notify_all()
            waits = list(self._waits)
        self._ask(lambda: self._end(waits))

    def close(self) -> None:
        """As the port says."""
        self.wake()
        with contextlib.suppress(redis.RedisError, OSError):
            self._server.close()

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[tuple[str, int]]:
        with self._changed:
            me, before = f"{self._name}:wake:{self._token}:{next(self._numbers)}", self._woken
            self._waits.add(me)
        try:
            yield me, before
        finally:
            with self._changed:
                self._waits.remove(me)

    def _take(self, me: str, lanes: Sequence[str], n: int, seconds: float) -> tuple[str, ...]:
        """What is there; if nothing is, the first that comes."""
        keys = [key for lane in lanes for key in (self._list(lane), self._set(lane))]
        there = self._ask(lambda: self._pop(keys=keys, args=[n]))
        return self._await(me, lanes, n, seconds) if seconds > 0 and not there else tuple(there or ())

    def _await(self, me: str, lanes: Sequence[str], n: int, seconds: float) -> tuple[str, ...]:
        keys = [me, *map(self._list, lanes)]
        pop = ("BLMPOP", seconds, len(keys), *keys, "LEFT", "COUNT", n)
        found = self._ask(lambda: self._server.execute_command(*pop))
        if not found or found[0] == me:
            return ()
        key, tasks = found
        self._ask(lambda: self._server.srem(self._set(key.removeprefix(self._list(""))), *tasks))
        return tuple(tasks)

    def _end(self, waits: Sequence[str]) -> None:
        with self._server.pipeline(transaction=False) as line:
            for key in waits:
                line.rpush(key, "wake").expire(key, 60)
            line.execute()

    def _rest(self, before: int, seconds: float) -> None:
        """A server that is away is not asked again at once."""
        away = min(seconds, self._away_until - time.monotonic())
        if away > 0:
            with self._changed:
                self._changed.wait_for(lambda: self._woken != before, away)

    def _ask(self, question: Callable[[], Any]) -> Any:
        """The server's answer, None if it is away."""
        if time.monotonic() < self._away_until:
            return None
        try:
            return question()
        except (redis.RedisError, OSError) as e:
            log.warning("hints are away: %s", e)
            self._away_until = time.monotonic() + _REST
            return None

    def _list(self, lane: str) -> str:
        return f"{self._name}:hints:{lane}"

    def _set(self, lane: str) -> str:
        return f"{self._name}:hinted:{lane}"
