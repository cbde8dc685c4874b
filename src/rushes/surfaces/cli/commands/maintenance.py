"""Caring for a home: init, verify, gc, backup, restore, reindex."""

from pathlib import Path

import click
from rich.live import Live

from rushes.domain.errors import Refused
from rushes.jobs.maintenance.verify import Verified
from rushes.library import Library, RunReport
from rushes.settings import HOME_NAME
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.screen import DONE, TROUBLE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import many, size
from rushes.surfaces.cli.views import summary
from rushes.surfaces.cli.views.no_hits import what_there_is
from rushes.surfaces.cli.views.progress import Watcher, watcher

_DIR = click.Path(file_okay=False)


@verb("init", "rushes init", "rushes init /films", "rushes init /films --take-over")
@click.argument("folder", default=".", type=_DIR, metavar="[DIR]")
@click.option("--take-over", is_flag=True, help="The home came from another machine and works there no more.")
@click.pass_obj
def init(session: Session, folder: str, take_over: bool) -> None:
    """Make a home in a folder, for the footage below it.

    It is the folder .rushes there: it holds everything that is made, and can be moved together with the footage.
    """
    if not Path(folder).is_dir():
        raise Refused(f"{folder} is not a folder", "Make the folder first.")
    home = Path(session.home) if session.home else Path(folder).absolute() / HOME_NAME
    there = (home / "ledger.sqlite").exists()
    with Library(home, take_over=take_over) as library:
        library.jobs(limit=1)  # opens the ledger: a home that cannot be used is refused here
    if session.json:
        session.document({"home": home, "made": not there})
        return
    session.out.line(str(home), ("  taken over" if take_over else "  was there already" if there else "  made", DONE))
    session.remark((f"next: rushes run {folder}", DONE))


@verb("verify", "rushes verify", "rushes verify --repair", "rushes verify --json | tail -1")
@click.option("--repair", is_flag=True, help="Make what is damaged again, and nothing else.")
@click.pass_obj
def verify(session: Session, repair: bool) -> int:
    """Read every file and compare it with its hash; exit 1 if one is damaged."""
    library = opened(session)
    found = _look(session, library)
    for damage in found.damages:
        if session.json:
            session.message("error", **{k: getattr(damage, k) for k in ("job", "task", "output", "what")})
        else:
            session.out.line(("damaged", TROUBLE), f"  {damage.task}  {damage.output}: {damage.what}")
    if not (repair and found.damages):
        return _verdict(session, found, repaired=False)
    watching = watcher(session, lambda _job: None)
    watching.begin(len({d.job for d in found.damages}))
    try:
        ran = _repair(library, found, watching)
    finally:
        watching.close()
    if ran.exit_code:
        summary.tell(session, library, ran, [], summary.Notes())
        return ran.exit_code
    return _verdict(session, found, repaired=True)


@verb("gc", "rushes gc", "rushes gc --json")
@click.pass_obj
def gc(session: Session) -> None:
    """Free space: what only unfinished work needed, clips past their time, leftovers of crashes."""
    cleared = opened(session).gc()
    if session.json:
        session.document(cleared)
    else:
        session.out.line(f"{size(cleared.size)} freed", (f"  {cleared.blobs} files, {cleared.results} results", DONE))


@verb("backup", "rushes backup /mnt/disk/rushes-backup", "rushes backup ../backup --json")
@click.argument("folder", type=_DIR, metavar="DIR")
@click.pass_obj
def backup(session: Session, folder: str) -> None:
    """Copy the home, while it is in use if need be; repeated, it copies only what is new."""
    done = opened(session).backup(folder)
    if session.json:
        session.document(done)
        return
    session.out.line(f"{many(done.files, 'file')}, {size(done.size)}", (f"  {done.copied} copied now", DONE))
    session.remark((f"restore it with: rushes --home NEW restore {folder}", DONE))


@verb("restore", "rushes --home /films/.rushes restore /mnt/disk/rushes-backup")
@click.argument("folder", type=_DIR, metavar="DIR")
@click.pass_obj
def restore(session: Session, folder: str) -> None:
    """Make a home from a backup: the one --home names, or .rushes in this folder."""
    home = Path(session.home) if session.home else Path.cwd() / HOME_NAME
    count = Library.restore(folder, home)
    if session.json:
        session.document({"home": home, "files": count})
        return
    session.out.line(f"{home}  {many(count, 'file')} restored")
    session.remark((f"next: rushes --home {home} verify", DONE))


@verb("reindex", "rushes reindex")
@click.pass_obj
def reindex(session: Session) -> None:
    """Build the search index anew from the results; nothing is computed again."""
    library = opened(session)
    library.reindex()
    if session.json:
        session.document(library.summary())
    else:
        session.out.line(what_there_is(library))


def _look(session: Session, library: Library) -> Verified:
    if not session.bars:
        return library.verify()
    with Live(console=session.err.console, auto_refresh=False, transient=True) as live:

        def tell(count: int, name: str) -> None:
            live.update(session.err.styled((f"{many(count, 'result')} read  {name}", DONE)), refresh=count % 10 == 0)

        return library.verify(tell)


def _repair(library: Library, found: Verified, watching: Watcher) -> RunReport:
    for progress in library.repairing(found.damages, signals=True):
        watching.show(progress)
    assert isinstance(progress, RunReport), "it comes last"
    return progress


def _verdict(session: Session, found: Verified, *, repaired: bool) -> int:
    bad = len(found.damages)
    if session.json:
        counts = {"results": found.results, "files": found.files, "bytes": found.size, "damaged": bad}
        session.message("summary", **counts, repaired=repaired)
        return int(bool(bad) and not repaired)
    read = f"{many(found.results, 'result')}, {many(found.files, 'file')}, {size(found.size)} read"
    end = "all as they were made" if not bad else f"{bad} damaged" + (", made again" if repaired else "")
    session.out.line(f"{read}: {end}")
    if bad and not repaired:
        session.remark(("next: rushes verify --repair", DONE))
    return int(bool(bad) and not repaired)


COMMANDS = {"init": init, "verify": verify, "gc": gc, "backup": backup, "restore": restore, "reindex": reindex}
