"""Jobs created in a range of times, both ends inclusive: pages of the ledger, filtered."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from rushes.domain.errors import Refused
from rushes.domain.job import Job
from rushes.ledger.port import Page

MOST_PAGES = 20  # of the ledger that one answer looks at; the next page goes on there


@dataclass(frozen=True, slots=True)
class CreatedRange:
    """From when until when, as jobs say it ("2026-11-18T16:22:40.143Z"); "" is no end."""

    since: str = ""
    until: str = ""

    @staticmethod
    def parse(since: str = "", until: str = "") -> "CreatedRange":
        """Of two dates or times in ISO 8601, UTC unless they say.

        Raises:
            Refused: one is neither.
        """
        return CreatedRange(parse_time(since), parse_time(until))

    def page(
        self, fetch: Callable[[str, int], Page[Job]], cursor: str, limit: int, *, by_creation: bool = True
    ) -> Page[Job]:
        """Those of the range; `fetch` answers a page of all by cursor and limit, newest first if `by_creation`."""
        rows: list[Job] = []
        for _ in range(MOST_PAGES):
            page = fetch(cursor, limit - len(rows))
            rows += [job for job in page.rows if self._has(job)]
            over = by_creation and bool(page.rows) and page.rows[-1].created_at < self.since
            cursor = "" if over else page.cursor
            if not cursor or len(rows) >= limit:
                break
        return Page(tuple(rows), cursor)

    def _has(self, job: Job) -> bool:
        return self.since <= job.created_at and (not self.until or job.created_at <= self.until)


ANY_TIME = CreatedRange()


def utc_millis(at: datetime) -> str:
    """A time as jobs say it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def parse_time(text: str) -> str:
    """A date or time in ISO 8601 (UTC unless it says) as jobs and events say it; "" stays.

    Raises:
        Refused: it is neither.
    """
    if not text:
        return ""
    try:
        at = datetime.fromisoformat(text)
        return utc_millis(at if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as e:
        raise Refused(f"{text[:40]!r} is not a time", "Write it as 2026-11-18 or 2026-11-18T16:22:40Z.") from e
