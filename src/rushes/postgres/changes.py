"""Cursors over changes in PostgreSQL: at least once, none skipped.

Transactions end in another order than they began, so that no number alone can be a cursor. Every row bears the number
of the transaction that last changed it; a cursor is the last such row that was answered, and every transaction before
it that was still under way: `top.number/late,late`.
"""

from collections.abc import Sequence

from rushes.postgres.transaction import Row


def place(cursor: str) -> dict[str, object]:
    """What a statement needs to go on: the last row, and the transactions that were under way."""
    last, _, late = (cursor or "0.0").partition("/")
    top, _, number = last.partition(".")
    return {"top": top, "number": int(number), "late": late.split(",") if late else []}


def after(cursor: str, rows: Sequence[Row]) -> str:
    """The cursor behind rows that end with their transaction, their number and the snapshot that saw them."""
    if not rows:
        return cursor
    *_, top, number, snapshot = rows[-1]
    _, end, running = snapshot.split(":")
    was = place(cursor)
    before = (int(str(was["top"])), int(str(was["number"])))
    last = max(before if before[0] < int(end) else (0, 0), (int(top), number))
    late = [id for id in running.split(",") if id and int(id) < last[0]]
    return f"{last[0]}.{last[1]}" + ("/" + ",".join(late) if late else "")
