"""What a database provides for the SQL index: named statements, text search, transactions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from rushes.index import passages, tokenizer
from rushes.index.passages import Passage
from rushes.index.port import Window
from rushes.index.query import Term

Rows = Sequence[Sequence[Any]]
CONTENT_VERSION = passages.VERSION * 100 + tokenizer.VERSION  # of what the tables are filled with


class SqlTransaction(Protocol):
    """A transaction that is open: runs named statements."""

    def run(self, name: str, /, **values: object) -> object:
        """Run a statement."""

    def all(self, name: str, /, **values: object) -> Rows:
        """Run it, and answer its rows."""

    def many(self, name: str, rows: Iterable[Mapping[str, object]], /) -> None:
        """Run it for each of these rows."""

    def reset(self) -> None:
        """Empty every table."""


class SqlDatabase(Protocol):
    """What a database brings: named statements, and its own way to say arrays, text queries and passages."""

    def ask(self, name: str, /, **values: object) -> Rows:
        """The rows of one statement."""

    def write(self, body: Callable[[SqlTransaction], None]) -> None:
        """Run a body in a transaction that is committed at the end, or leaves no trace."""

    def lock(self, patience: float = 2.0) -> AbstractContextManager[bool]:
        """As `Index.lock`."""

    def close(self) -> None:
        """Close what is open."""

    def array(self, values: Iterable[str]) -> object:
        """A list of texts as a statement takes it."""

    def windows(self, windows: Sequence[Window]) -> object:
        """Windows as a statement takes them."""

    def text_query(self, term: Term) -> str:
        """A term in the language of its text search."""

    def passage_row(self, passage: Passage) -> Mapping[str, object]:
        """The columns of a passage."""
