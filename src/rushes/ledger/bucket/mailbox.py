"""What is asked of a film that another process holds: small objects beside its database, done by its holder.

A request is stored before it is answered, and can be repeated: it is deleted after the database that has it is stored.
"""

import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import Refused, WrongHome
from rushes.domain.job import JobCommand
from rushes.ledger.clock import iso
from rushes.ledger.port import Ledger
from rushes.telemetry import log

_FOLDER = "/requests/"
_NAME = re.compile(r"[^/]+-[0-9a-f]{8}\.json")
POINT = "request"  # where a test may kill the process


@dataclass(frozen=True, slots=True)
class FilmRequest:
    """A command for a job or a worker; without a command, the revival of tasks."""

    target: str
    command: str = ""
    value: int = 0
    tasks: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()

    def apply(self, ledger: Ledger) -> None:
        """Do it.

        Raises:
            Refused: it cannot be done any more: the job has ended, or is gone.
        """
        if self.command:
            ledger.control(self.target, JobCommand(self.command), self.value, self.stages)
        else:
            ledger.revive(self.target, self.tasks, self.stages)


class Mailbox:
    """The requests of one film, the oldest first."""

    def __init__(self, bucket: ConditionalBucket, folder: str) -> None:
        self._bucket, self._folder = bucket, folder
        self._applied: set[str] = set()  # in this process; whoever takes the film next begins with what is left

    def put(self, request: FilmRequest, wall: int) -> None:
        """Ask for it, after all that is asked already, whatever the clocks of other machines say."""
        now = f"{self._folder}{_FOLDER}{iso(wall)}"
        last = max(self._keys(), default="")
        key = f"{max(now, last)}-{secrets.token_hex(4)}.json"
        self._bucket.swap(key, json.dumps(asdict(request)).encode(), "", {}, POINT)

    def apply(self, ledger: Ledger) -> list[str]:
        """Do what is asked and was not done yet; answers the keys, to be deleted when the ledger is stored."""
        keys = sorted(self._keys())
        for key in keys:
            if key not in self._applied and (request := self._read(key)):
                try:
                    request.apply(ledger)
                except Refused as e:
                    log.warning("%s was requested for %s and failed: %s", request.command, request.target, e)
            self._applied.add(key)
        return keys

    def delete(self, keys: list[str]) -> None:
        """They are done, and stored."""
        for key in keys:
            self._bucket.delete(key, POINT)

    def _keys(self) -> list[str]:
        there = self._bucket.list(f"{self._folder}{_FOLDER}")
        return [key for key in there if _asked(key) == self._folder]

    def _read(self, key: str) -> FilmRequest | None:
        try:
            stored = self._bucket.get(key)
            return parse_request(stored.data) if stored else None
        except (ValueError, KeyError, TypeError, WrongHome) as e:
            log.warning("%s is not a request: %s", key, e)
            return None


def parse_request(data: bytes) -> FilmRequest:
    """The request that is stored.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    doc = json.loads(data)
    command, value = str(doc["command"]), int(doc["value"])
    command = JobCommand(command) if command else ""
    return FilmRequest(str(doc["target"]), command, value, _texts(doc["tasks"]), _texts(doc["stages"]))


def _texts(items: object) -> tuple[str, ...]:
    if not isinstance(items, list):
        raise TypeError("not a list")
    return tuple(map(str, items))


def films_asked(keys: Iterable[str], folder: str) -> frozenset[str]:
    """The films that something is asked of, by the keys of a list."""
    return frozenset(asked.removeprefix(f"{folder}/") for key in keys if (asked := _asked(key)))


def _asked(key: str) -> str:
    """The folder of the film that a key asks something of; "" if it is no request: a film may be called so as well."""
    film, _, name = key.rpartition(_FOLDER)
    return film if _NAME.fullmatch(name) else ""
