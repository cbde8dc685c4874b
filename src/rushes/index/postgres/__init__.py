"""The index in PostgreSQL: text search over words that our own tokenizer made."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from rushes.domain.errors import WrongHome
from rushes.index.passages import Passage
from rushes.index.port import Window
from rushes.index.query import Term
from rushes.index.sql import SqlIndex
from rushes.index.sql.database import CONTENT_VERSION, SqlTransaction
from rushes.postgres.schema import scripted
from rushes.postgres.store import Postgres
from rushes.postgres.transaction import Row, Transaction
from rushes.statements import statements

SCHEMA = 4
_VERSION = SCHEMA * 10_000 + CONTENT_VERSION
_LOCK = 7310030
_FARTHEST = 16_383  # positions beyond are not kept apart by PostgreSQL
_HERE = Path(__file__)
_SQL = statements(_HERE.with_name("statements.sql"))
_TABLES = (
    *("cursor", "job", "run", "video", "renamed", "published", "result", "shown", "line", "correction", "passage"),
    *("extent", "track"),
)


class PostgresIndex(SqlIndex):
    """The index in the schema `rushes_index` of a database."""

    def __init__(self, db: Postgres) -> None:
        self._db = db
        if self._version() != _VERSION:
            db.write("index", _SQL, _create)

    def ask(self, name: str, /, **values: object) -> list[Row]:
        return self._db.ask(_SQL[name], values)

    def write(self, body: Callable[[SqlTransaction], None]) -> None:
        self._db.write("index", _SQL, lambda tx: body(_Writes(tx)))

    def lock(self, patience: float = 2.0) -> AbstractContextManager[bool]:
        return self._db.alone(_LOCK, patience)

    def close(self) -> None:
        self._db.close()

    def array(self, values: Iterable[str]) -> list[str]:
        return list(values)

    def windows(self, windows: Sequence[Window]) -> str:
        return json.dumps([{"video": video, "first": start, "last": end} for video, start, end in windows])

    def text_query(self, term: Term) -> str:
        kinds = " | ".join(_quoted(f"={kind}") for kind in term.kinds)
        followed = " <-> ".join(map(_quoted, term.words)) + (":*" if term.prefix else "")
        return f"(({kinds}) & ({followed}))" if kinds else f"({followed})"

    def passage_row(self, passage: Passage) -> dict[str, object]:
        return {**asdict(passage), "found": _tsvector(passage.kind, passage.words.split(" "))}

    def _version(self) -> int:
        """The version that is there, 0 if there is none."""
        rows = self.ask("version") if self.ask("exists")[0][0] else []
        return _checked(rows[0][0]) if rows else 0


class _Writes:
    """A transaction that can also run a statement for many rows, sent as JSON."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.run, self.all = tx.run, tx.all

    def many(self, name: str, rows: Iterable[Mapping[str, object]], /) -> None:
        self._tx.run(name, rows=json.dumps(list(rows)))

    def reset(self) -> None:
        self._tx.run_text("TRUNCATE " + ", ".join(f"rushes_index.{name}" for name in _TABLES))


def _create(tx: Transaction) -> None:
    """Drop whatever is there and make the tables, unless another process just did."""
    tx.all("lock")
    found = tx.column("exists")[0] and tx.column("version")
    if not found or _checked(found[0]) != _VERSION:
        tx.run_text("DROP SCHEMA IF EXISTS rushes_index CASCADE")
        scripted(tx, _HERE.with_name("schema.sql"))
        tx.run("keep_version", version=_VERSION)


def _checked(version: int) -> int:
    if version > _VERSION:
        raise WrongHome(
            f"this index was made by a newer rushes (version {version}, this one makes {_VERSION})",
            "Use the newer version everywhere.",
        )
    return version


def _tsvector(kind: str, words: list[str]) -> str:
    """A line's words with their positions, and its kind as a word that nobody can say."""
    positions: dict[str, list[str]] = {}
    for position, word in enumerate(words, 1):
        positions.setdefault(word, []).append(str(min(position, _FARTHEST)))
    said = (f"{_quoted(word)}:{','.join(at)}" for word, at in positions.items())
    return " ".join([_quoted(f"={kind}"), *said])


def _quoted(word: str) -> str:
    """A word in the language of text search, of which none can be syntax."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
