"""The index in one SQLite file: FTS5 over words that our own tokenizer made."""

from pathlib import Path

from rushes.index.sql import SqlIndex
from rushes.index.sqlite.file import Database


class SqliteIndex(SqlIndex):
    """The index in a file of the home, or beside the process that reads it."""

    def __init__(self, path: Path) -> None:
        super().__init__(Database(path))
