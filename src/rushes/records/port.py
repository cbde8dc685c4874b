"""The records port: what users say (a path, a name, a correction, a policy), as versioned documents."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from rushes.domain.keys import JSON


@dataclass(frozen=True, slots=True)
class Record:
    """One document with the version it has now (1 is the first); a deleted one is a tombstone in `changed`."""

    kind: str
    owner: str
    id: str
    version: int
    doc: Mapping[str, JSON]
    deleted: bool = False


class Conflict(Exception):
    """Somebody else wrote the record first; read it again and decide again."""


def next_version(there: Record | None, name: str, expected: int | None) -> int:
    """The version of the next write; a tombstone counts on, so that no version is used twice.

    Raises:
        Conflict: another version is there than expected (0 = none).
    """
    live = there.version if there and not there.deleted else 0
    if expected not in (None, live):
        raise Conflict(f"{name} has version {live}, not {expected}")
    return 1 + (there.version if there else 0)


class Records(Protocol):
    """Documents by kind, owner and id."""

    def get(self, kind: str, owner: str, id: str) -> Record | None:
        """The record, None if there is none."""
        return self.get_many(kind, owner, [id]).get(id)

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        """Those of these records that are there, by id; one request, however many are named."""

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        """Write a record; `expected` is the version that must be there (0 = none, None = whatever there is).

        Raises:
            Conflict: another version is there.
        """

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        """Delete it; False if there was none. Raises Conflict as put does."""

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        """Records in order of id, and the next cursor ("" at the end)."""

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        """Records written or deleted since the cursor, at least once each, and the next cursor."""


def all_records(records: Records, kind: str, owner: str) -> Iterator[Record]:
    """Every record of a kind, in order of id."""
    cursor, more = "", True
    while more:
        rows, cursor = records.list(kind, owner, cursor, 500)
        yield from rows
        more = bool(cursor)
