"""Throttling of logins and tokens: failed attempts are counted by address and name, with a growing pause."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock

from rushes.domain.errors import Refused

FREE = 10  # wrong tries of an address without a pause
ATTACKED = 30  # wrong tries of a name, from wherever; then each further address has one try without a pause
MOST_SECONDS = 900.0  # of a pause
FORGET_SECONDS = 3600.0
MOST = 10_000  # addresses and names that are remembered
Key = tuple[str, ...]


class TooManyTries(Refused):
    """Too many wrong passwords or tokens, or too many logins at once."""

    def __init__(self, message: str, seconds: float) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        super().__init__(message, f"Try again in {self.retry_after} s.")


@dataclass(slots=True)
class Tries:
    """Wrong tries, and when the last one was."""

    count: int = 0
    last: float = 0.0

    def pause(self, free: int) -> float:
        """Seconds from the last one to the next."""
        return min(MOST_SECONDS, 2.0 ** min(self.count - free, 30)) if self.count >= free else 0.0


@dataclass(slots=True)
class Throttle:
    """Tries are counted before they are looked at; a right one is taken back, and nobody else waits for it."""

    clock: Callable[[], float] = time.monotonic
    _tries: OrderedDict[Key, Tries] = field(default_factory=OrderedDict)
    _guard: RLock = field(default_factory=RLock)

    def admit(self, address: str, name: str = "") -> None:
        """Count a try that is about to be looked at.

        Raises:
            TooManyTries: it is not looked at.
        """
        with self._guard:
            self.check(address, name)
            self.count(address, name)

    def check(self, address: str, name: str = "") -> None:
        """Raises TooManyTries while this address has to wait; another address never waits for it."""
        of_address, of_name, of_both = _keys(address, name)
        with self._guard:
            self._forget()
            free = 1 if self._at(of_name).count >= ATTACKED else FREE
            wait = max(self._wait(of_address, FREE), self._wait(of_both, free))
        if wait > 0:
            raise TooManyTries("too many failed attempts", wait)

    def count(self, address: str, name: str = "") -> None:
        """Another wrong try."""
        with self._guard:
            for key in _keys(address, name):
                self._tries[key] = Tries(self._at(key).count + 1, self.clock())
                self._tries.move_to_end(key)
            while len(self._tries) > MOST:
                self._tries.popitem(last=False)

    def forgive(self, address: str, name: str = "") -> None:
        """One that was counted was right, or was never looked at."""
        with self._guard:
            for key in _keys(address, name):
                self._at(key).count -= 1

    def __len__(self) -> int:
        return len(self._tries)

    def _wait(self, key: Key, free: int) -> float:
        tries = self._at(key)
        return tries.last + tries.pause(free) - self.clock()

    def _at(self, key: Key) -> Tries:
        return self._tries.get(key) or Tries(last=-math.inf)

    def _forget(self) -> None:
        """The oldest stand first."""
        while self._tries and next(iter(self._tries.values())).last < self.clock() - FORGET_SECONDS:
            self._tries.popitem(last=False)


def network(address: str) -> str:
    """The address, or of IPv6 the /64 that one person has all of."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:60]
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def _keys(address: str, name: str) -> tuple[Key, Key, Key]:
    place, name = network(address), name[:60]
    return ("address", place), ("name", name), ("both", place, name)
