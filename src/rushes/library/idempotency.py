"""Idempotent requests: each key is answered once; a request that a killed process left open is taken over."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.home import Home
from rushes.records.port import Conflict, Record

__all__ = ["Conflict", "Record", "Requests", "forget_requests"]
REQUEST = "request"  # the kind of record
KEEP_SECONDS = 7 * 86400.0
ANSWER_SECONDS = 300.0  # far more than an answer takes; then its own process has lost it too


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of a home, as one process answers them; `by` is another in every process."""

    home: Home
    by: str

    def take(self, id: str, asked: str) -> Record | None:
        """Make a request ours to answer; None if it is answered, being answered, or another one."""
        had = self.get(id)
        if had and not self._is_left(had, asked):
            return None
        doc = {"asked": asked, "by": self.by, "at": time.time()}
        with suppress(Conflict):
            return self.home.records.put(REQUEST, self.home.owner, id, doc, expected=had.version if had else 0)
        return None

    def get(self, id: str) -> Record | None:
        """What is known of a request."""
        return self.home.records.get(REQUEST, self.home.owner, id)

    def answer(self, taken: Record, answer: Mapping[str, JSON]) -> None:
        """Remember the answer, unless somebody else has taken the request over meanwhile."""
        doc = {**taken.doc, "answer": answer}
        with suppress(Conflict):
            self.home.records.put(REQUEST, self.home.owner, taken.id, doc, expected=taken.version)

    def drop(self, taken: Record) -> None:
        """It could not be answered: the next one may try."""
        with suppress(Conflict):
            self.home.records.delete(REQUEST, self.home.owner, taken.id, expected=taken.version)

    def _is_left(self, had: Record, asked: str) -> bool:
        """Whether its process is gone. Two that answer at once do no harm: ids are hashes of what is asked."""
        if had.doc["asked"] != asked or "answer" in had.doc:
            return False
        return had.doc.get("by") != self.by or time.time() - _at(had) > ANSWER_SECONDS


def forget_requests(home: Home) -> int:
    """Forget requests of long ago; answers how many."""
    old = [record for record in home.all_records(REQUEST) if time.time() - _at(record) > KEEP_SECONDS]
    for record in old:
        with suppress(Conflict):
            home.records.delete(REQUEST, home.owner, record.id, expected=record.version)
    return len(old)


def _at(record: Record) -> float:
    return float(record.doc.get("at", 0.0))
