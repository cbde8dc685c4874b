"""Results on SQLite: where they lie, which there are, and taking them out."""

from collections.abc import Collection, Sequence
from itertools import repeat
from operator import add, and_, itemgetter
from zlib import crc32

from rushes.domain.result import Result
from rushes.ledger.sqlite_store import Row, Transaction, encode

SUBJECT = 12  # letters of a result key that name its subject
_head, _rest = itemgetter(slice(SUBJECT)), itemgetter(slice(SUBJECT, None))
_NOWHERE = -1 << 32  # where a subject that was never met would begin
_EIGHTHS = 0xFFFF_FFF8


def keep(turn: Transaction, owner: str, results: Sequence[Result]) -> None:
    """Those that are not there yet: one that is there never changes."""
    if not results:
        return
    keys, *columns, publishes = zip(*results, strict=True)  # by columns: a third of the time
    rests = list(map(_rest, keys))
    whole = (_marks(turn, owner, keys, rests, adding=True), rests, *columns, list(map(int, publishes)))
    if turn.bulk("result_add", whole) < len(rests):
        _keep_beside(turn, list(zip(*whole, strict=True)))


def known(turn: Transaction, owner: str, keys: Collection[str]) -> dict[str, Result]:
    """Which of these results exist."""
    return {row[0]: _result(row) for row in turn.run("results", _asked(turn, owner, keys))}


def set_aside(turn: Transaction, owner: str, keys: Collection[str], reason: str) -> int:
    """Take results out; how many there were."""
    asked = _asked(turn, owner, keys)
    turn.run("aside_add", owner, turn.wall, reason, asked)
    return turn.run("result_drop", asked).rowcount


def _keep_beside(turn: Transaction, rows: Sequence[Row]) -> None:
    """Some were there, or others have their marks."""
    new = {row[:2]: row for row in reversed(rows)}
    for there in turn.all("results_there", encode([row[0] for row in new.values()])):
        new.pop(there, None)
    for row in new.values():
        turn.run("result_beside", *row)


def _asked(turn: Transaction, owner: str, keys: Collection[str]) -> str:
    """Keys with their marks, for a statement that looks for them."""
    rests = list(map(_rest, keys))
    return encode([*zip(_marks(turn, owner, keys, rests), rests, keys, strict=True)])


def _marks(
    turn: Transaction, owner: str, keys: Collection[str], rests: list[str], *, adding: bool = False
) -> list[int]:
    """The first of the eight numbers where each of these results may lie; negative where none can."""
    heads = list(map(_head, keys))
    begins = map(_subjects(turn, owner, heads, adding).get, heads, repeat(_NOWHERE))
    prints = map(crc32, map(str.encode, rests))
    return list(map(add, begins, map(and_, prints, repeat(_EIGHTHS))))


def _subjects(turn: Transaction, owner: str, heads: Sequence[str], adding: bool) -> dict[str, int]:
    found: dict[str, int] = dict(turn.all("subjects", owner, encode(list(set(heads)))))
    if adding and (new := [head for head in dict.fromkeys(heads) if head not in found]):
        found |= turn.all("subjects_add", owner, encode(new))
    return found


def _result(row: Row) -> Result:
    key, output, manifest, size, count, schema, publishes = row
    return Result(key, output, manifest, size, count, schema, bool(publishes))
