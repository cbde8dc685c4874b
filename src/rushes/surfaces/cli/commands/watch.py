"""Watching folders and buckets: what is new there is taken in by itself."""

import signal
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

import click

from rushes.library import IntakeResult
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.commands.add import tell_added
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.request_options import wish_of, wishes
from rushes.surfaces.cli.screen import DONE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import many


@verb(
    "watch",
    "rushes watch ~/Films",
    "rushes watch ~/Films --once && rushes worker --until-idle",
    "rushes watch s3://bucket/day1",
)
@click.argument("places", nargs=-1, metavar="[DIR|s3://BUCKET/PREFIX]...")
@wishes
@click.option("--once", is_flag=True, help="Take in what is there and stop.")
@click.pass_obj
def watch(session: Session, /, places: Sequence[str], once: bool, **words: Any) -> int:
    """Take in what is new in folders and buckets, by itself.

    A file is taken when its size and time have not changed between two looks; downloads in progress are left alone.
    A file that was moved is recognised by its content. The work is done by: rushes worker.
    """
    library, wanted = opened(session, create=True), wish_of(words)
    added = []
    with _Stop() as stop:
        session.remark(("looking twice" if once else "watching; Ctrl-C stops", DONE))
        for one in library.watch(places, wanted, once=once, pause=lambda s: session.out.heard and stop.wait(s)):
            if one.created or one.error:
                tell_added(session, one)
                added.append(one)
    _tell(session, added)
    return 128 + stop.number if stop.number else 3 if any(one.error for one in added) else 0


class _Stop:
    """Ctrl-C or SIGTERM ends the pause; the look that is under way is finished."""

    def __init__(self) -> None:
        self.number = 0
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._before = {s: signal.signal(s, self._told) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_why: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, seconds: float) -> bool:
        """Wait; False if it is time to stop."""
        return not self._over.wait(seconds)

    def _told(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        self._over.set()


def _tell(session: Session, added: Sequence[IntakeResult]) -> None:
    new, bad = sum(one.created for one in added), sum(one.error is not None for one in added)
    if session.json:
        session.message("summary", jobs=new, errors=bad)
    else:
        session.remark((f"{many(new, 'film')} taken in", DONE))


COMMANDS = {"watch": watch}
