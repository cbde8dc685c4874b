"""What changed in a table since a cursor: rows are listed by when they changed, and nobody's clock need be exact.

A writer that began earlier may be listed later; so the last minute is read again, without what was answered before.
"""

import itertools
import json
from collections.abc import Callable

from rushes.aws.table import Key, Table

OVERLAP_MILLIS = 60_000  # longer than any write is under way
_PAGE = 1000


class Timestamps:
    """Times of one process, each later than the one before."""

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall, self._numbers = wall, itertools.count()

    def next(self) -> str:
        """Milliseconds and a number."""
        return f"{self._wall():015d}.{next(self._numbers):09d}"


def changed_keys(table: Table, part: str, cursor: str) -> tuple[list[Key], str]:
    """Rows that changed since, in order, and the next cursor; call again until there are none."""
    at, known = json.loads(cursor) if cursor else (0, {})
    found: dict[Key, str] = {}
    for item in table.query(part, f"{max(0, at - OVERLAP_MILLIS):015d}", index="by_change"):
        key, when = (str(item["pk"]), str(item["sk"])), str(item["changed_at"])
        if known.get("\n".join(key)) != when:
            found[key] = when
        if len(found) == _PAGE:
            break
    if not found:
        return [], cursor
    at = max(at, *map(_millis, found.values()))
    known |= {"\n".join(key): when for key, when in found.items()}
    late = {key: when for key, when in known.items() if _millis(when) >= at - OVERLAP_MILLIS}
    return list(found), json.dumps([at, late])


def _millis(when: str) -> int:
    return int(when.partition(".")[0])
