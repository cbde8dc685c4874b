"""Date filters: a day, month or year, a word for one, a range, before or after. Pure."""

import calendar
import re
from datetime import date, timedelta

EXAMPLES = "2026, 2026-11, 2026-11-18, 2025..2026, >2020, today, yesterday, last-week or may-2026"

_DAY = re.compile(r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2}))?)?")
_COMPARED = re.compile(r"(?P<sign>[<>]=?)(?P<value>.+)")
_MONTH = re.compile(r"(?P<name>[a-z]{3,9})[ -](?P<year>\d{4})")
_MONTHS = {name.lower()[:size]: n for n, name in enumerate(calendar.month_name) if name for size in (3, len(name))}
_MONTHS |= {"sept": 9}
_ONE = timedelta(days=1)
Days = tuple[date, date]  # the first and the last


def date_range(text: str, today: date) -> str:
    """`2026-11-01..2026-11-30`, one end empty where there is none; "" if the text names no days."""
    text = text.strip().lower()
    compared = _COMPARED.fullmatch(text)
    if compared:
        return _compared(compared["sign"], _days(compared["value"].strip(), today))
    if ".." not in text:
        days = _days(text, today)
        return f"{days[0]}..{days[1]}" if days else ""
    first, last = ((side, _days(side, today)) for side in text.split("..", 1))
    if (first[0] and not first[1]) or (last[0] and not last[1]) or not (first[1] or last[1]):
        return ""
    return f"{first[1][0] if first[1] else ''}..{last[1][1] if last[1] else ''}"


def is_within(days: str, moment: str) -> bool:
    """Whether a moment in ISO 8601 lies in a range of days; both ends count whole."""
    first, _, last = days.partition("..")
    return bool(moment) and (not first or moment[: len(first)] >= first) and (not last or moment[: len(last)] <= last)


def _compared(sign: str, days: Days | None) -> str:
    if days is None:
        return ""
    first, last = days
    try:
        edges = {">": f"{last + _ONE}..", ">=": f"{first}..", "<": f"..{first - _ONE}", "<=": f"..{last}"}
    except OverflowError:
        return ""
    return edges[sign]


def _days(text: str, today: date) -> Days | None:
    text = text.replace(" ", "-")
    return _named(text, today) or _numbered(text)


def _named(text: str, today: date) -> Days | None:
    monday = today - timedelta(days=today.weekday())
    this_month, this_year = _month(today.year, today.month), _year(today.year)
    named: dict[str, Days | None] = {
        "today": (today, today),
        "yesterday": (today - _ONE, today - _ONE),
        "this-week": (monday, monday + 6 * _ONE),
        "last-week": (monday - 7 * _ONE, monday - _ONE),
        "this-month": this_month,
        "last-month": _month(*(this_month[0] - _ONE).timetuple()[:2]) if this_month else None,
        "this-year": this_year,
        "last-year": _year(today.year - 1),
    }
    month = _MONTH.fullmatch(text)
    if month and month["name"] in _MONTHS:
        return _month(int(month["year"]), _MONTHS[month["name"]])
    return named.get(text)


def _numbered(text: str) -> Days | None:
    found = _DAY.fullmatch(text)
    if not found:
        return None
    if not found["month"]:
        return _year(int(found["year"]))
    if not found["day"]:
        return _month(int(found["year"]), int(found["month"]))
    try:
        day = date(int(found["year"]), int(found["month"]), int(found["day"]))
    except ValueError:
        return None
    return day, day


def _month(year: int, month: int) -> Days | None:
    if not (1 <= year <= 9999 and 1 <= month <= 12):
        return None
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])


def _year(year: int) -> Days | None:
    return (date(year, 1, 1), date(year, 12, 31)) if 1 <= year <= 9999 else None
