"""Ranges of times in which jobs were created."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from rushes.domain.errors import Refused
from rushes.domain.job import Job
from rushes.ledger.port import Page
from rushes.library import created_range
from rushes.library.created_range import CreatedRange


@dataclass(frozen=True)
class Row:
    created_at: str


DAYS = [f"2026-11-{day:02d}T00:00:00.000Z" for day in range(30, 0, -1)]  # newest first


class Ledger:
    """Pages of two, and how often it was asked."""

    asked = 0

    def fetch(self, cursor: str, _limit: int) -> Page[Job]:
        self.asked += 1
        at = int(cursor or 0)
        rows = cast("Any", tuple(Row(day) for day in DAYS[at : at + 2]))
        return Page(rows, str(at + 2) if at + 2 < len(DAYS) else "")


def days(range: CreatedRange, limit: int = 50, **how: Any) -> list[int]:
    return [int(row.created_at[8:10]) for row in range.page(Ledger().fetch, "", limit, **how).rows]


def test_both_ends_are_inside() -> None:
    assert days(CreatedRange.parse("2026-11-27", "2026-11-28T00:00:00Z")) == [28, 27]
    assert days(CreatedRange.parse("2026-11-29T02:00:00+02:00")) == [30, 29]


def test_what_is_older_is_not_looked_at_unless_the_order_is_another() -> None:
    ledger = Ledger()
    assert CreatedRange.parse("2026-11-29").page(ledger.fetch, "", 50).cursor == ""
    assert ledger.asked == 2
    other = Ledger()
    CreatedRange.parse("2026-11-29").page(other.fetch, "", 50, by_creation=False)
    assert other.asked == len(DAYS) / 2


def test_a_long_way_to_the_range_ends_with_a_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(created_range, "MOST_PAGES", 3)
    old, cursor, found, pages = CreatedRange.parse(until="2026-11-02"), "", [], 0
    while cursor or not pages:
        page = old.page(Ledger().fetch, cursor, 50)
        cursor, pages = page.cursor, pages + 1
        found += [row.created_at[8:10] for row in page.rows]
    assert (found, pages) == (["02", "01"], 5)


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "0001-01-01T00:00:00+23:00", "9" * 40])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        CreatedRange.parse(text)
