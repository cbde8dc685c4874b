"""The audit log: who did what, when and from where; append-only, expires after a while."""

import getpass
import secrets
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rushes.home import Home
from rushes.records.port import Conflict, Record
from rushes.telemetry import log

AUDIT = "audit"  # the kind of record
TERMINAL = "terminal"  # where somebody is who uses the command line
FAILURES = 600  # failed logins that are written down in an hour: strangers must not fill the disk
HOUR, DAY = 3600.0, 86400.0
_LAST = 10**17  # microseconds: ids count down, so that the newest entry is the first of a list
PAGE = 500


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Somebody did something."""

    at: str
    who: str  # an account, "token", "local" (an open server), or a user of this machine
    address: str
    action: str
    target: str

    @staticmethod
    def of(record: Record) -> "AuditEntry":
        """From the records."""
        return AuditEntry(**{name: str(record.doc.get(name, "")) for name in AuditEntry.__slots__})


@dataclass(slots=True)
class Audit:
    """The audit log of a home; nothing in it is a secret."""

    home: Home
    _failures: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))

    def write(self, action: str, who: str, address: str, target: str = "") -> None:
        """Add an entry."""
        now = time.time()
        at = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry = AuditEntry(at, _clean(who, 40), _clean(address, 60), action, _clean(target, 300))
        doc = {name: getattr(entry, name) for name in AuditEntry.__slots__}
        self.home.records.put(AUDIT, self.home.owner, f"{_id(now)}-{secrets.token_hex(4)}", doc, expected=0)

    def write_failure(self, who: str, address: str, target: str = "") -> None:
        """Add a failed login, unless there were too many."""
        now = time.monotonic()
        if len(self._failures) == FAILURES and now - self._failures[0] < HOUR:
            log.warning("more than %d failed logins in an hour: the audit log leaves some out", FAILURES)
            return
        self._failures.append(now)
        self.write("login failed", who, address, target)

    def write_here(self, action: str, target: str = "") -> None:
        """Add what the user of this terminal did."""
        self.write(action, _user(), TERMINAL, target)

    def page(self, cursor: str = "", limit: int = 100) -> tuple[list[AuditEntry], str]:
        """Entries, newest first, and the next cursor ("" at the end)."""
        rows, more = self.home.records.list(AUDIT, self.home.owner, cursor, limit)
        return [AuditEntry.of(row) for row in rows], more

    def since(self, seconds: float) -> Iterator[AuditEntry]:
        """Every entry of the last so many seconds, newest first."""
        end, cursor, more = _id(time.time() - seconds), "", True
        while more:
            rows, cursor = self.home.records.list(AUDIT, self.home.owner, cursor, PAGE)
            for row in rows:
                if row.id > end:
                    return
                yield AuditEntry.of(row)
            more = bool(cursor)

    def forget(self) -> int:
        """Delete entries that are older than `audit_days`; answers how many."""
        old, count = _id(time.time() - self.home.settings.audit_days * DAY), 0
        while rows := self.home.records.list(AUDIT, self.home.owner, old, PAGE)[0]:
            for row in rows:
                with suppress(Conflict):
                    count += self.home.records.delete(AUDIT, self.home.owner, row.id)
        return count


def _id(seconds: float) -> str:
    return f"{_LAST - int(max(0.0, seconds) * 1_000_000):017d}"


def _clean(text: str, most: int) -> str:
    """Printable and short: a name that a stranger chose stands in it."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:most])


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
