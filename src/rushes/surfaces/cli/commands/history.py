"""The numbered history of a job: every event once, live if wanted."""

import threading
from datetime import date

import click

from rushes.domain.event import Event, EventType
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.screen import DONE, HEAD, TROUBLE, Part
from rushes.surfaces.cli.session import Session, plain
from rushes.surfaces.cli.text import lasted
from rushes.surfaces.cli.times import local, utc

_DETAIL = ("stage", "fence", "worker", "chunk", "hint", "lines")  # stands elsewhere, or is for --verbose
_LONG = ("message", "lines")  # in lines of their own
_STYLES = {EventType.FAILED: TROUBLE, EventType.DEAD: TROUBLE, EventType.LOST: TROUBLE, EventType.FINISHED: HEAD}
LOOK_SECONDS = 0.5


@verb("events", "rushes jobs events job_7f3k", "rushes jobs events job_7f3k --follow --json")
@click.argument("job")
@click.option("--after", default=0, metavar="NUMBER", help="Only events after this number.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job is finished.")
@click.pass_obj
def events(session: Session, job: str, after: int, follow: bool) -> None:
    """Show the numbered history of a job, live with --follow.

    Times are yours on a terminal, UTC in a pipe and with --json.
    """
    clock, day = threading.Event(), None
    pause = (lambda: session.out.heard and not clock.wait(LOOK_SECONDS)) if follow else (lambda: False)
    for event in opened(session).events(job, after, pause):
        if session.json:
            session.message("event", **plain(event))
            continue
        day = _new_day(session, event, day)
        session.out.row(*_row(event, session))
        for words in _long(event, session):
            session.out.block("", DONE, words)


def _new_day(session: Session, event: Event, day: date | None) -> date:
    """The date and the zone, once a day, so that a row has room for the rest."""
    at = local(event.at)
    if session.out.terminal and at.date() != day:
        session.out.line((f"{at:%A %Y-%m-%d, %Z}", DONE))
    return at.date()


def _row(event: Event, session: Session) -> list[Part]:
    at = f"{local(event.at):%H:%M:%S}" if session.out.terminal else utc(event.at)
    where = (event.task or "").partition(".")[2]
    kind = (f"{event.type:<10}", _STYLES.get(event.type, ""))
    left_out = _LONG if session.verbose else (*_LONG, *_DETAIL)
    words = "  ".join(_word(k, v) for k, v in event.data.items() if v not in (None, "") and k not in left_out)
    return [f"{event.number:>5}  ", (f"{at}  ", DONE), kind, f"  {where:<17}  ", (words, DONE)]


def _long(event: Event, session: Session) -> list[str]:
    """What went wrong, and with --verbose the last lines of its log."""
    lines = [str(line) for line in event.data.get("lines") or ()] if session.verbose else []
    return [str(event.data["message"]), *lines] if event.data.get("message") else lines


def _word(name: str, value: object) -> str:
    return lasted(value) if name == "seconds" and isinstance(value, float) else f"{name} {value}"
