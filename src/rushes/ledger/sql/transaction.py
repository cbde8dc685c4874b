"""What the verbs need of an SQL backend: a transaction with a timestamp that runs named statements."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]
encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: names may hold bytes that are no text


class Reader(Protocol):
    """A look at the database: named statements, and the moment if the database's own clock does not count."""

    @property
    def now(self) -> float | None:
        """Seconds by which what is due counts."""

    @property
    def awake(self) -> float | None:
        """Seconds by which leases count."""

    @property
    def at(self) -> int | None:
        """Milliseconds since 1970, for a statement; None where the database's own clock counts."""

    def all(self, name: str, /, **values: object) -> list[Row]:
        """All rows that a statement answers."""

    def one(self, name: str, /, **values: object) -> Row | None:
        """Its first row."""

    def column(self, name: str, /, **values: object) -> list[Any]:
        """The first value of each row."""


class Transaction(Reader, Protocol):
    """A transaction that writes: committed whole, or it leaves no trace."""

    @property
    def wall(self) -> int:
        """Milliseconds since 1970, for people."""

    @property
    def now(self) -> float:
        """Seconds by which what is due counts."""

    @property
    def awake(self) -> float:
        """Seconds by which leases count."""

    def run(self, name: str, /, **values: object) -> object:
        """Run a statement whose answer nobody needs."""

    def send(self, name: str, /, **values: object) -> Callable[[], list[Row]]:
        """Run a statement and ask for its rows later, so that one trip to the server can carry several."""

    def many(self, name: str, rows: Sequence[Mapping[str, object]], /) -> None:
        """Run a statement for each of these rows."""

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], *, skip_existing: bool = False) -> None:
        """Insert rows with the same columns."""


def legible(text: str) -> str:
    """Text that every database can carry: no NUL, no bytes that are no text."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
