"""Progress of a long maintenance run, on disk: memory stays flat, and an interrupted run continues."""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from rushes.files import open_private

_SCHEMA = """
CREATE TABLE IF NOT EXISTS mark (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS item (list TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (list, key))
WITHOUT ROWID;
"""
_SETTINGS = ("journal_mode = TRUNCATE", "synchronous = OFF", "cache_size = -16384")  # a power cut may tear it
_PAGE = 500


class WorkFile:
    """Named lists of keys with a value each, and marks: how far the look has come.

    Nothing in it is the truth: it may be deleted at any time, and the look begins again.
    """

    def __init__(self, path: Path | None, question: str = "", keep_seconds: float = 0.0) -> None:
        """Go on with the file if it was begun for the same question within `keep_seconds`; no path: a temporary one."""
        self._path, self.resumed = path, False
        self._db = self._open()
        if self.get("question") == question and time.time() - float(self.get("begun") or 0) < keep_seconds:
            self.resumed = True
        else:
            self.clear()
            self.set(question=question, begun=str(time.time()))

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.DatabaseError:  # it is none, or was torn by a power cut
            self.remove()
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        if self._path:
            with contextlib.suppress(OSError):  # it is there, or SQLite says what is wrong
                os.close(open_private(self._path, os.O_RDWR | os.O_EXCL))
        db = sqlite3.connect(self._path or "", check_same_thread=False, isolation_level=None)
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
        db.executescript(_SCHEMA)
        return db

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """What is written here is kept whole, or not at all."""
        self._db.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # Marks
    def get(self, name: str) -> str:
        """A mark, "" if it was never set."""
        row = self._db.execute("SELECT value FROM mark WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def set(self, **marks: str) -> None:
        """Set marks."""
        self._db.executemany("INSERT OR REPLACE INTO mark VALUES (?, ?)", marks.items())

    def number(self, name: str) -> int:
        """A mark that counts."""
        return int(self.get(name) or 0)

    def count(self, **by: int) -> None:
        """Count marks up."""
        self.set(**{name: str(self.number(name) + n) for name, n in by.items() if n})

    # Lists
    def add(self, list: str, keys: Iterable[str], value: str = "") -> None:
        """Keys with a value; one that is there gets the new value."""
        self._db.executemany("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", ((list, key, value) for key in keys))

    def find(self, list: str, keys: Collection[str]) -> dict[str, str]:
        """Those of these keys that a list has, with their values."""
        asked = "SELECT key, value FROM item WHERE key IN (SELECT value FROM json_each(?)) AND list = ?"
        return dict(self._db.execute(asked, (json.dumps([*keys]), list)))

    def page(self, list: str, after: str = "", limit: int = _PAGE) -> dict[str, str]:
        """The next keys of a list in order, with their values."""
        asked = "SELECT key, value FROM item WHERE list = ? AND key > ? ORDER BY key LIMIT ?"
        return dict(self._db.execute(asked, (list, after, limit)))

    def size(self, list: str) -> int:
        """How many keys a list has."""
        return int(self._db.execute("SELECT count(*) FROM item WHERE list = ?", (list,)).fetchone()[0])

    # Ending
    def clear(self) -> None:
        """Begin again."""
        self._db.executescript("DELETE FROM mark; DELETE FROM item;")

    def close(self) -> None:
        """Keep it for the next time."""
        self._db.close()

    def remove(self) -> None:
        """The look is over."""
        with contextlib.suppress(AttributeError):
            self._db.close()
        for name in (self._path, self._path and self._path.with_name(f"{self._path.name}-journal")):
            if name:
                name.unlink(missing_ok=True)
