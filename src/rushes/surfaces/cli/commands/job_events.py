"""The history of a job, and the output of its attempts: since a time, live, or replayed."""

import base64
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

import click

from rushes.domain.errors import Refused
from rushes.domain.event import Event, EventType
from rushes.library import Library
from rushes.library.created_range import utc_millis
from rushes.library.job_events import EventFilter, WorkEvent, WorkEventType, millis, watch
from rushes.surfaces import words
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import DONE, HEAD, TROUBLE, Part
from rushes.surfaces.cli.session import Session, to_json

_DETAIL = ("stage", "fence", "worker", "chunk", "hint", "lines")  # stands elsewhere, or is for --verbose
_LONG = ("message", "lines")  # in lines of their own
_STYLES = {EventType.FAILED: TROUBLE, EventType.DEAD: TROUBLE, EventType.LOST: TROUBLE, EventType.FINISHED: HEAD}
LOOK_SECONDS = 0.5
T = TypeVar("T", EventType, WorkEventType)
LONGEST_PAUSE = 2.0  # of a playback: nobody waits through a night


@command("events", "rushes jobs events job_7f3k", "rushes jobs events job_7f3k --follow --json",
         "rushes jobs events job_7f3k --output --playback")  # fmt: skip
@click.argument("job")
@click.option("--after", default=0, metavar="NUMBER", help="Only events after this number.")
@click.option(
    "--since", default="", metavar="TIME", help="Only from this time on: 30m, 24h, 2026-11-18 or 2026-11-18T16:22:40Z."
)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only these; may be repeated.")
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the job is finished.")
@click.option("--output", is_flag=True, help="Show what its attempts reported: start, output, end or error.")
@click.option(
    "--playback", is_flag=True, help=f"Replay at the original pace, with pauses of at most {LONGEST_PAUSE:g} s."
)
def events(
    session: Session,
    job: str,
    after: int,
    since: str,
    types: tuple[str, ...],
    follow: bool,
    output: bool,
    playback: bool,
) -> None:
    """Show the numbered events of a job, live with --follow.

    Times are local on a terminal, UTC in a pipe and with --json.
    """
    library, clock = open_library(session), threading.Event()
    id, begin, pace = library.jobs.find(job).id, _since(since), _Pace(clock if playback else None)
    pause = (lambda: session.out.heard and not clock.wait(LOOK_SECONDS)) if follow else (lambda: False)
    if output:
        for told in _told(
            library, id, after, EventFilter(millis(begin) if begin else 0, _known(types, WorkEventType)), pause
        ):
            pace.keep(told.timestamp)
            _show_told(session, told)
    else:
        _show_history(session, _history(library, id, after, begin, types, pause), pace)


class _Pace:
    """Waits as long as it took until the next event."""

    def __init__(self, clock: threading.Event | None) -> None:
        self._clock, self._last = clock, 0

    def keep(self, at: int) -> None:
        """The next one is of this time, in milliseconds."""
        if self._clock and self._last:
            self._clock.wait(min(LONGEST_PAUSE, max(0.0, (at - self._last) / 1000)))
        self._last = at


def _known(types: tuple[str, ...], known: type[T]) -> list[T]:
    for name in types:
        if name not in list(known):
            raise Refused(f"unknown type of event {name[:40]!r}", f"Choose from: {', '.join(known)}")
    return [known(name) for name in types]


def _since(text: str) -> str:
    """A time as events say it, "" for none."""
    return utc_millis(datetime.now(UTC) - timedelta(seconds=words.parse_ago(text))) if text else ""


def _history(
    library: Library, job: str, after: int, since: str, types: tuple[str, ...], pause: Callable[[], bool]
) -> Iterator[Event]:
    wanted = _known(types, EventType)
    for event in library.jobs.follow(job, after, pause):
        if event.at >= since and (not wanted or event.type in wanted):
            yield event


def _told(
    library: Library, job: str, after: int, wanted: EventFilter, pause: Callable[[], bool]
) -> Iterator[WorkEvent]:
    found = watch(library.home, job, after + 1, wanted)
    while True:
        yield from found.look()
        if found.over or not (found.more or pause()):
            return


def _show_history(session: Session, found: Iterator[Event], pace: _Pace) -> None:
    day = None
    for event in found:
        pace.keep(millis(event.at))
        if session.json:
            session.message("event", **to_json(event))
            continue
        day = _new_day(session, event, day)
        session.out.row(*_event_row(event, session))
        for line in _long(event, session):
            session.block("", DONE, line)


def _show_told(session: Session, event: WorkEvent) -> None:
    text = event.data.decode("utf-8", "replace")
    if session.json:
        told = to_json(event)
        session.message("output", **told | {"data": base64.b64encode(event.data).decode("ascii"), "text": text})
        return
    if event.before:
        session.line((f"output before number {event.before} is no longer kept", DONE))
    at = datetime.fromtimestamp(event.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
    when = f"{words.local_time(at):%H:%M:%S}" if session.out.terminal else words.utc(at)
    where = event.task.partition(".")[2]
    style = TROUBLE if event.type is WorkEventType.PROCESS_ERROR else ""
    session.out.row((f"{when}  ", DONE), f"{where:<17} {event.attempt:>2}  ", (f"{event.type:<13}  ", style), text)


def _new_day(session: Session, event: Event, day: date | None) -> date:
    """Print the date and time zone once a day; rows then need only the time."""
    at = words.local_time(event.at)
    if session.out.terminal and at.date() != day:
        session.line((f"{at:%A %Y-%m-%d, %Z}", DONE))
    return at.date()


def _event_row(event: Event, session: Session) -> list[Part]:
    at = f"{words.local_time(event.at):%H:%M:%S}" if session.out.terminal else words.utc(event.at)
    where = (event.task or "").partition(".")[2]
    kind = (f"{event.type:<10}", _STYLES.get(event.type, ""))
    left_out = _LONG if session.verbose else (*_LONG, *_DETAIL)
    told = "  ".join(_word(k, v) for k, v in event.data.items() if v not in (None, "") and k not in left_out)
    return [f"{event.number:>5}  ", (f"{at}  ", DONE), kind, f"  {where:<17}  ", (told, DONE)]


def _long(event: Event, session: Session) -> list[str]:
    """The error message, and with --verbose the last log lines."""
    lines = [str(line) for line in event.data.get("lines") or ()] if session.verbose else []
    return [str(event.data["message"]), *lines] if event.data.get("message") else lines


def _word(name: str, value: object) -> str:
    if name == "state":
        return words.final_word(value)
    return words.duration(value) if name == "seconds" and isinstance(value, float) else f"{name} {value}"
