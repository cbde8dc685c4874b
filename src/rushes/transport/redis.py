"""Hints by Redis or Valkey: a list of task ids per lane, and where in it each was put, so that none waits twice.

Ids are put in at the end and taken from the beginning, so that the length of the list tells which places are taken:
whoever takes writes nothing down. Nothing is acknowledged: an id that is lost is announced again by who reconciles.
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

# Whether ids wait: KEYS are the list and the hash of places, whose empty field has the last place that was given. An
# empty list begins anew; where most places are of ids that were taken, they are noted anew from the list.
_PLACES = """
local SLICE = 1000
local length = redis.call('LLEN', KEYS[1])
if length == 0 then redis.call('UNLINK', KEYS[2]) end
local last = tonumber(redis.call('HGET', KEYS[2], '') or length)
local taken = last - length

local function slices(count, work)
  for first = 1, count, SLICE do work(first, math.min(first + SLICE - 1, count)) end
end

local function note(tasks, place)
  local noted = {'', place + #tasks}
  for n, task in ipairs(tasks) do
    noted[2 * n + 1], noted[2 * n + 2] = task, place + n
  end
  redis.call('HSET', KEYS[2], unpack(noted))
end

local function missing()
  local found, seen = {}, {}
  slices(#ARGV, function(first, till)
    local places = redis.call('HMGET', KEYS[2], unpack(ARGV, first, till))
    for n, place in ipairs(places) do
      local task = ARGV[first + n - 1]
      if not seen[task] and (not place or tonumber(place) <= taken) then table.insert(found, task) end
      seen[task] = true
    end
  end)
  return found
end
"""

_ANNOUNCE = """
if redis.call('HLEN', KEYS[2]) > 2 * length + SLICE then
  redis.call('UNLINK', KEYS[2])
  slices(length, function(first, till) note(redis.call('LRANGE', KEYS[1], first - 1, till - 1), taken + first - 1) end)
end
local new = missing()
slices(#new, function(first, till)
  redis.call('RPUSH', KEYS[1], unpack(new, first, till))
  note({unpack(new, first, till)}, last + first - 1)
end)
redis.call('EXPIRE', KEYS[2], 86400)
"""

_MISSING = "return missing()"


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
        self._announce, self._missing = (self._server.register_script(_PLACES + do) for do in (_ANNOUNCE, _MISSING))
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
                self._ask(lambda: self._announce(keys=self._keys(lane), args=list(tasks)))

    def missing(self, lane: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """As the port says."""
        return tuple(self._ask(lambda: self._missing(keys=self._keys(lane), args=list(tasks))) or ())

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
            raise StoreRefuses(f"access denied: {e}") from e
        except (redis.RedisError, OSError) as e:
            raise StoreAway(f"no response: {e}", "Check that the server is running.") from e
        self.announce(lane, ["well"])
        if self.wait((lane,), CHECK_SECONDS) != ("well",):
            raise StoreAway("a test hint did not arrive")
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
        keys = [me, *map(self._list, lanes)]
        pop = ("BLMPOP", seconds) if seconds > 0 else ("LMPOP",)
        found = self._ask(lambda: self._server.execute_command(*pop, len(keys), *keys, "LEFT", "COUNT", n))
        return tuple(found[1]) if found and found[0] != me else ()

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
            log.warning("hints are not available: %s", e)
            self._away_until = time.monotonic() + _REST
            return None

    def _list(self, lane: str) -> str:
        return f"{self._name}:hints:{lane}"

    def _keys(self, lane: str) -> list[str]:
        """The list and the places of a lane."""
        return [self._list(lane), f"{self._name}:places:{lane}"]
