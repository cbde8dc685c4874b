"""Results on SQLite: where they lie, which there are, and taking them out."""

from collections.abc import Collection, Sequence
from itertools import repeat
from zlib import crc32

from rushes.domain.result import Result
from rushes.ledger.sqlite_store import Row, Turn, encode

SUBJECT = 12  # letters of a result key that name its subject


def keep(turn: Turn, owner: str, results: Sequence[Result]) -> None:
    """Those that are not there yet: one that is there never changes."""
    if not results:
        return
    keys, *columns, publishes = zip(*results, strict=True)  # by columns: a third of the time
    marks = _marks(turn, owner, keys, add=True)
    rows: list[Row] = list(zip(marks, repeat(owner), keys, *columns, map(int, publishes)))
    if turn.bulk("result_add", rows) < len(rows):
        _keep_beside(turn, rows)


def known(turn: Turn, owner: str, keys: Collection[str]) -> dict[str, Result]:
    """Which of these results exist."""
    return {row[0]: _result(row) for row in turn.run("results", _asked(turn, owner, keys), owner)}


def set_aside(turn: Turn, owner: str, keys: Collection[str], reason: str) -> int:
    """Take results out; how many there were."""
    asked = _asked(turn, owner, keys)
    turn.run("aside_add", turn.wall, reason, asked, owner)
    return turn.run("result_drop", asked, owner).rowcount


def _keep_beside(turn: Turn, rows: Sequence[Row]) -> None:
    """Some were there, or others have their marks."""
    new = {row[1:3]: row for row in reversed(rows)}
    for there in turn.all("results_there", encode([row[0] for row in new.values()])):
        new.pop(there, None)
    for row in new.values():
        turn.run("result_beside", *row)


def _asked(turn: Turn, owner: str, keys: Collection[str]) -> str:
    """Keys with their marks, for a statement that looks for them."""
    return encode([*zip(_marks(turn, owner, keys), keys, strict=True)])


def _marks(turn: Turn, owner: str, keys: Collection[str], *, add: bool = False) -> list[int]:
    """The first of the eight numbers where each of these results may lie; negative where none can."""
    heads = [key[:SUBJECT] for key in keys]
    numbers = map(_subjects(turn, set(heads), add).get, heads, repeat(-1))
    prints = map(crc32, map(str.encode, keys), repeat(crc32(owner.encode())))
    return [number << 31 | print >> 4 << 3 for number, print in zip(numbers, prints, strict=True)]


def _subjects(turn: Turn, heads: set[str], add: bool) -> dict[str, int]:
    found: dict[str, int] = dict(turn.all("subjects", encode(list(heads))))
    if not add or len(found) == len(heads):
        return found
    return found | dict(turn.all("subjects_add", encode(sorted(heads - found.keys()))))


def _result(row: Row) -> Result:
    key, output, manifest, size, count, schema, publishes = row
    return Result(key, output, manifest, size, count, schema, bool(publishes))
