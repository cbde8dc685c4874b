"""Reading all records of a kind, page by page."""

from collections.abc import Iterator

from rushes.records.port import Record, Records


def all_records(records: Records, kind: str, owner: str) -> Iterator[Record]:
    """Every record of a kind, in order of id."""
    cursor, more = "", True
    while more:
        rows, cursor = records.list(kind, owner, cursor, 500)
        yield from rows
        more = bool(cursor)
