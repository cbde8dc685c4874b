"""Worker tokens, for workers without credentials: stored as hashes, each with a name, until revoked."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from rushes.domain.errors import NotAllowed, NotFound, Refused
from rushes.home import Home
from rushes.records.port import Conflict

KIND = "worker_token"  # of record
KNOWN_SECONDS = 15.0  # for which an answer of the records is believed: a revoked token works so long at most
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class WorkerToken:
    """The name of a token for workers, and since when there is one."""

    name: str
    created_at: str


class WorkerTokens:
    """The worker tokens of a home."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self._known: dict[str, tuple[float, str]] = {}  # by name: when it was read, and the hash

    def create(self, name: str) -> str:
        """A new token, to be shown once.

        Raises:
            Refused: the name will not do, or there is one of that name.
        """
        if not _NAME.match(name):
            raise Refused("a name must have 1 to 40 characters: a-z, 0-9, dash", "For example: render-1")
        secret = secrets.token_urlsafe(32)
        doc = {"sha256": _hash(secret), "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")}
        try:
            self._home.records.put(KIND, self._home.owner, name, doc, expected=0)
        except Conflict as e:
            raise Refused(
                f"the worker token {name!r} already exists", f"Revoke it first: rushes tokens revoke {name}"
            ) from e
        return f"{name}.{secret}"

    def all(self) -> list[WorkerToken]:
        """Every one, by name."""
        return [WorkerToken(record.id, str(record.doc["at"])) for record in self._home.all_records(KIND)]

    def revoke(self, name: str) -> None:
        """Refuse it from now on; what its workers hold is free when their leases are over.

        Raises:
            NotFound: there is none.
        """
        if not self._home.records.delete(KIND, self._home.owner, name):
            raise NotFound(f"no worker token {name[:40]!r}", "List them: rushes tokens ls")

    def check(self, text: str) -> str:
        """The name of a token that is ours.

        Raises:
            NotAllowed: it is none.
        """
        name, _, secret = text.partition(".")
        if not _NAME.match(name) or not hmac.compare_digest(self._hash_of(name), _hash(secret)):
            raise NotAllowed("this is not a worker token of this server", "Make one: rushes tokens worker NAME")
        return name

    def _hash_of(self, name: str) -> str:
        at, found = self._known.get(name, (0.0, ""))
        if not found or self._clock() - at > KNOWN_SECONDS:
            record = self._home.records.get(KIND, self._home.owner, name)
            found = str(record.doc["sha256"]) if record else ""
            if record:
                self._known[name] = self._clock(), found
            else:
                self._known.pop(name, None)
        return found


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
