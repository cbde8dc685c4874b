"""Maintaining a home: init, trust, verify, rm, gc, backup, restore, migrate, index, reindex."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.live import Live

from rushes import home_folder
from rushes.domain.errors import NotFound, Refused
from rushes.home_location import HOME_NAME, named_home
from rushes.library import GcProgress, Library, RemovalReport, RunReport, Selection, VerifyProgress, VerifyReport
from rushes.library.access.audit import Audit
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import PartOf, Share, open_library
from rushes.surfaces.cli.screen import DONE, NOW, TROUBLE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views import summary
from rushes.surfaces.cli.views.hits import describe_library
from rushes.surfaces.cli.views.progress import Watcher, watcher
from rushes.surfaces.words import plural, size

_DIR = click.Path(file_okay=False)


@command("init", "rushes init", "rushes init /films", "rushes init /films --take-over")
@click.argument("folder", default=".", type=_DIR, metavar="[DIR]")
@click.option("--take-over", is_flag=True, help="Take over a home of another machine, or results of another store.")
def init(session: Session, folder: str, take_over: bool) -> None:
    """Create a home in a folder, for the videos below it.

    The home is the folder .rushes there. It holds all results and can be moved together with the videos.
    """
    if not Path(folder).is_dir():
        raise Refused(f"{folder} is not a folder", "Create the folder first.")
    home = named_home(session.home) if session.home else Path(folder).absolute() / HOME_NAME
    existed, named = (home / "ledger.sqlite").exists(), bool(session.home) or not home.exists()
    with Library(home, take_over=take_over, named=named) as library:
        library.jobs.page(limit=1)  # opens the ledger: a home that cannot be used is refused here
        if take_over:
            library.maintenance.free_bytes()  # opens the results
    if named and not existed:
        home_folder.remember(home)
    session.document({"home": home, "made": not existed})
    session.line(str(home), ("  taken over" if take_over else "  already exists" if existed else "  created", DONE))
    session.remark((f"next: rushes run {folder}", DONE))


@command("trust", "rushes trust", "rushes trust /mnt/disk/films/.rushes", "rushes trust /mnt/disk/backup")
@click.argument("folder", default=".", type=_DIR, metavar="[DIR]")
def trust(session: Session, folder: str) -> None:
    """Trust a home or a backup that someone else created or can change.

    Its settings then apply, including those that name servers and keys: read its rushes.toml first. Homes that you
    created with rushes init, or name with --home, need no trust unless other users can write to them. The list of
    trusted homes is trusted.json, next to your own rushes.toml.
    """
    trusted = home_folder.trust(named_home(folder))
    session.document({"trusted": trusted})
    session.line(str(trusted), ("  trusted", DONE))


@command("verify", "rushes verify", "rushes verify --repair", "rushes verify --sample 1%", "rushes verify --part 2/8")
@click.option("--repair", is_flag=True, help="Recreate damaged results, and nothing else.")
@click.option("--sample", type=Share(), default="100%", help="Read only a random share of the results, e.g. 1%.")
@click.option(
    "--part", type=PartOf(), default="1/1", help="Read one part of several, e.g. 2/8: each on another machine."
)
@click.option("--restart", is_flag=True, help="Start over instead of continuing an interrupted verification.")
def verify(session: Session, repair: bool, sample: float, part: tuple[int, int], restart: bool) -> int:
    """Check every stored file against its hash; exit 1 if one is damaged.

    If interrupted, the same command continues.
    """
    library = open_library(session)
    found = _look(session, library, Selection(sample, *part), restart=restart)
    for damage in found.damages:
        session.message("error", **{k: getattr(damage, k) for k in ("job", "task", "output", "what")})
        session.line(("damaged", TROUBLE), f"  {damage.task}  {damage.output}: {damage.what}")
    if not (repair and found.damages):
        return _verdict(session, found, repaired=False)
    watching = watcher(session, lambda _job: None)
    watching.begin(len({d.job for d in found.damages}))
    try:
        ran = _repair(library, found, watching)
    finally:
        watching.close()
    if ran.exit_code:
        summary.report(session, library, ran, [], None)
        return ran.exit_code
    return _verdict(session, found, repaired=True)


@command("rm", "rushes rm holiday.mp4", "rushes rm vid_7kq2 --yes", "rushes rm talk.mp4 --uploaded")
@click.argument("videos", nargs=-1, required=True, metavar="VIDEO...")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--uploaded", is_flag=True, help="Also delete the original if it was uploaded to this home.")
def rm(session: Session, videos: Sequence[str], yes: bool, uploaded: bool) -> None:
    """Delete videos and everything made from them.

    Originals in folders and buckets are kept. If interrupted, run the same command again, or rushes gc.
    """
    library = open_library(session)
    if not yes:
        _ask(session, len(videos))
    gone = [_remove(library, video, uploaded) for video in videos]
    Audit(library.home).write_here("video deleted", " ".join(one.video for one in gone))
    session.rows("removed", gone)
    for one in gone:
        session.line(one.video, (f"  deleted: {_what(one)}", DONE))
    session.remark(("free the disk space with: rushes gc", DONE))


@command("gc", "rushes gc", "rushes gc --json")
def gc(session: Session) -> None:
    """Free disk space: intermediate files, expired clips, old events, leftovers of crashes.

    Workers do this once a day. If interrupted, the same command continues.
    """
    with _live(session) as tell:
        cleared = open_library(session).maintenance.gc(lambda progress: tell(_gc_words(progress)))
    session.document(cleared)
    session.line(f"{size(cleared.size)} freed", (f"  {cleared.blobs} files, {cleared.results} results", DONE))


@command("backup", "rushes backup /mnt/disk/rushes-backup", "rushes backup ../backup --json")
@click.argument("folder", type=_DIR, metavar="DIR")
def backup(session: Session, folder: str) -> None:
    """Copy the home, even while it is in use; a repeated backup copies only what is new."""
    done = open_library(session).maintenance.backup(folder)
    session.document(done)
    session.line(f"{plural(done.files, 'file')}, {size(done.size)}", (f"  {done.copied} copied", DONE))
    session.remark((f"restore with: rushes --home NEW restore {folder}", DONE))


@command("restore", "rushes --home /films/.rushes restore /mnt/disk/rushes-backup")
@click.argument("folder", type=_DIR, metavar="DIR")
def restore(session: Session, folder: str) -> None:
    """Create a home from a backup: the one named by --home, or .rushes in this folder."""
    home = named_home(session.home) if session.home else Path.cwd() / HOME_NAME
    count = Library.restore(folder, home)
    session.document({"home": home, "files": count})
    session.line(f"{home}  {plural(count, 'file')} restored")
    session.remark((f"next: rushes --home {home} verify", DONE))


@command("migrate", "rushes migrate --check", "rushes migrate")
@click.option("--check", is_flag=True, help="Only print what would change; exit 1 if anything would.")
def migrate(session: Session, check: bool) -> int:
    """Apply store upgrades that older versions cannot work with.

    Compatible upgrades, which only add something, happen automatically while older workers keep running. This command
    applies the others: stop older workers and servers first, and make a backup.
    """
    changes = open_library(session).maintenance.migrate(check=check)
    session.document({"changes": changes, "done": not check})
    for what in changes:
        session.line(what, ("  needed" if check else "  done", NOW if check else DONE))
    if not changes:
        session.line("nothing to change")
    return int(check and bool(changes))


@command("index", "rushes index", "rushes index --from-sidecars ~/films", "rushes index --write-sidecars holiday.mp4")
@click.option(
    "--from-sidecars", "places", multiple=True, metavar="PATH", help="Read .rushes.jsonl files below a folder."
)
@click.option(
    "--write-sidecars", "videos", multiple=True, metavar="VIDEO", help="Write all results next to this video."
)
def index(session: Session, places: Sequence[str], videos: Sequence[str]) -> None:
    """Update the search index, or fill it from sidecar files when the home was lost."""
    library = open_library(session)
    read = library.maintenance.read_sidecars(places) if places else []
    written = [file for video in videos for file in library.videos.write_sidecars(library.videos.find(video))]
    known = library.summary()
    session.document({"read": read, "written": written, "summary": known})
    for one in read:
        note = one.kept or f"{one.name}  {plural(one.lines, 'line')}"
        session.line(str(one.path), f"  {note}")
    for file in written:
        session.line(str(file.path), *([(f"  not written: {file.kept}", NOW)] if file.kept else []))
    session.line(describe_library(known))


@command("reindex", "rushes reindex")
def reindex(session: Session) -> None:
    """Rebuild the search index from the results; nothing is processed again."""
    library = open_library(session)
    library.maintenance.reindex()
    known = library.summary()
    session.document(known)
    session.line(describe_library(known))


def _remove(library: Library, video: str, originals: bool) -> RemovalReport:
    """By name; what a kill left half removed is known by its id only."""
    try:
        id = library.videos.find(video).id
    except NotFound:
        id = video
    return library.videos.remove(id, originals=originals)


def _ask(session: Session, count: int) -> None:
    if session.json or not sys.stdin.isatty():
        raise Refused("cannot ask for confirmation: not a terminal", "Pass --yes.")
    them = "it" if count == 1 else "them"
    click.confirm(f"Delete {plural(count, 'video')} and everything made from {them}?", abort=True)


def _what(one: RemovalReport) -> str:
    parts = [plural(len(one.jobs), "job"), plural(one.results, "result")]
    return ", ".join(parts + ([plural(len(one.originals), "uploaded original")] if one.originals else []))


def _look(session: Session, library: Library, chosen: Selection, *, restart: bool) -> VerifyReport:
    def words(progress: VerifyProgress) -> str:
        jobs = f"job {progress.jobs} of {progress.total}"
        return f"{plural(progress.results, 'result')} read, {jobs}  {progress.name}"

    with _live(session) as tell:
        return library.maintenance.verify(lambda progress: tell(words(progress)), chosen, restart=restart)


@contextmanager
def _live(session: Session) -> Iterator[Callable[[str], None]]:
    """A line that says how far something is, on a terminal; written at most ten times a second."""
    if not session.bars:
        yield lambda _text: None
        return
    with Live(console=session.err.console, auto_refresh=False, transient=True) as live:
        shown = 0.0

        def tell(text: str) -> None:
            nonlocal shown
            due = time.monotonic() >= shown + 0.1
            shown = time.monotonic() if due else shown
            live.update(session.err.styled((text, DONE)), refresh=due)

        yield tell


_GC_WORDS = {"jobs": "jobs read", "manifests": "parts of the results read", "blobs": "parts of the files read"}


def _gc_words(progress: GcProgress) -> str:
    of = f" of {progress.total}" if progress.total else ""
    return f"{progress.done}{of} {_GC_WORDS.get(progress.phase, 'jobs read, clearing')}"


def _repair(library: Library, found: VerifyReport, watching: Watcher) -> RunReport:
    for progress in library.maintenance.repairing(found.damages, signals=True):
        watching.show(progress)
    assert isinstance(progress, RunReport), "it comes last"
    return progress


def _verdict(session: Session, found: VerifyReport, *, repaired: bool) -> int:
    bad = len(found.damages)
    counts = {"results": found.results, "files": found.files, "bytes": found.size, "damaged": bad}
    session.message("summary", **counts, repaired=repaired)
    if found.resumed:
        session.remark((f"{plural(found.resumed, 'result')} read before it was interrupted", DONE))
    read = f"{plural(found.results, 'result')}, {plural(found.files, 'file')}, {size(found.size)} read"
    end = "no damage" if not bad else f"{bad} damaged" + (", repaired" if repaired else "")
    session.line(f"{read}: {end}")
    if bad and not repaired:
        session.remark(("next: rushes verify --repair", DONE))
    return int(bool(bad) and not repaired)
