"""Results on SQL: known ones, those set aside, and log lines."""

from collections.abc import Collection, Sequence

from rushes.domain.result import Result
from rushes.ledger.rules import LOCK_SECONDS, LOG_LINES
from rushes.ledger.sql.transaction import Reader, Transaction, legible


def known(reader: Reader, owner: str, keys: Collection[str]) -> dict[str, Result]:
    """Which of these results exist."""
    rows = reader.all("results", owner=owner, keys=list(keys))
    return {row[0]: Result._make((*row[:6], bool(row[6]), row[7])) for row in rows}


def set_aside(tx: Transaction, owner: str, keys: Collection[str], reason: str, note_only: bool) -> int:
    """Take results out, or only note why they should be; how many there were."""
    these = {"owner": owner, "keys": list(keys)}
    tx.run("drop_asides", before=tx.wall - 1000 * LOCK_SECONDS)
    tx.run("note_aside", **these, at=tx.wall, reason=legible(reason))
    return len(tx.all("results" if note_only else "drop_results", **these))


def log(tx: Transaction, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
    """Keep log lines, the last of an attempt only; those of a task that nobody knows are dropped."""
    if not tx.one("tasks_by_id", ids=[task]):
        return
    about = {"task": task, "fence": fence, "at": tx.wall}
    rows = [{**about, "line": number, "text": legible(line)} for number, line in enumerate(lines, first)]
    tx.insert("log", rows, skip_existing=True)
    tx.run("trim_log", task=task, fence=fence, keep=LOG_LINES)
