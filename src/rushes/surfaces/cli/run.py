"""Taking footage in and working on it: run, add, worker, estimate."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from rushes.domain.errors import Refused, RushesError
from rushes.domain.job import Job, JobState
from rushes.library import Added, Estimate, Library, Wish
from rushes.surfaces.cli import summary, trouble
from rushes.surfaces.cli.opened import opened
from rushes.surfaces.cli.progress import watcher
from rushes.surfaces.cli.pulling import Pulling
from rushes.surfaces.cli.screen import DONE, Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import between, length, many
from rushes.surfaces.cli.verb import verb

_PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")


def wishes(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is wanted of footage."""
    options = [
        click.option("--recipe", default="", metavar="NAME", help="What is wanted: searchable (default) or subtitles."),
        click.option("--only", multiple=True, metavar="STAGE", help="These stages and what they need (repeatable)."),
        click.option("--skip", multiple=True, metavar="STAGE", help="Without these stages (repeatable)."),
        click.option("--profile", default="", metavar="NAME", help="Models: fast, balanced or high_quality."),
        click.option("--language", default="", metavar="CODE", help="What is spoken, like en or de (else found out)."),
        click.option("--chunk", default="", metavar="SECONDS", help="Length of a chunk, or 'large'."),
        click.option("--priority", default=0, metavar="N", help="Higher ones first."),
        click.option("--again", default=0, metavar="TAKE", help="Make it anew as take 1, 2, ...; nothing is deleted."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def wish_of(words: dict[str, Any]) -> Wish:
    """The wish that the options say."""
    chunk = words["chunk"]
    if chunk and chunk != "large" and not (chunk.isascii() and chunk.isdigit() and int(chunk) > 0):
        raise Refused(f"--chunk {chunk!r} is neither seconds nor 'large'", "For example: --chunk 30")
    return Wish(**{**words, "only": _names(words["only"]), "skip": _names(words["skip"])})


@verb(
    "run",
    "rushes run holiday.mp4",
    "rushes run ~/Films --recipe subtitles --language en",
    "rushes run interview.mov --only transcript --no-beside",
)
@_PATHS
@wishes
@click.option("--slots", type=int, metavar="N", help="Work on this many chunks at the same time.")
@click.option("--beside/--no-beside", default=None, help="Write subtitles beside the film (default: yes).")
@click.pass_obj
def run(session: Session, /, paths: Sequence[str], slots: int | None, beside: bool | None, **words: Any) -> int:
    """Develop footage here and now: watchable, searchable, cuttable.

    Files and folders; nothing is copied, no server is needed. Ctrl-C pauses and loses nothing (twice stops at once):
    the same command goes on where it stopped, even after a crash. What is finished is not done again.
    """
    library, wish = opened(session), wish_of(words)
    estimates: dict[str, tuple[float, float]] = {}
    pulling = Pulling(session)
    watching = watcher(session, _expecting(library, estimates))
    try:
        ran = library.run(
            paths, wish, slots=slots, look=watching.look, signals=True, beside=False, on_pull=pulling.look
        )
    finally:
        pulling.close()
        watching.close()
    wanted = library.house.settings.beside if beside is None else beside
    written = library.write_beside(ran.jobs) if wanted else []
    summary.tell(session, library, ran, written, estimates)
    return ran.exit_code


@verb("add", "rushes add ~/Films", "rushes add urgent.mp4 --priority 10", "rushes worker --until-idle")
@_PATHS
@wishes
@click.pass_obj
def add(session: Session, /, paths: Sequence[str], **words: Any) -> int:
    """Take footage in and leave the work to a worker.

    The same file with the same wish is the same job, however often it is added.
    """
    added = opened(session).add(paths, wish_of(words))
    for one in added:
        _tell_added(session, one)
    if session.json:
        session.message("summary", jobs=sum(a.created for a in added), errors=sum(a.error is not None for a in added))
    elif any(a.created for a in added):
        session.remark(("next: rushes worker --until-idle", DONE))
    return _code(added)


@verb("worker", "rushes worker", "rushes worker --until-idle --slots 2", "rushes worker --lane cpu")
@click.option("--slots", type=int, metavar="N", help="Work on this many chunks at the same time.")
@click.option("--lane", "lanes", multiple=True, metavar="LANE", help="Take work from this lane only (repeatable).")
@click.option("--until-idle", is_flag=True, help="Stop when nothing is left to do.")
@click.pass_obj
def worker(session: Session, slots: int | None, lanes: Sequence[str], until_idle: bool) -> int:
    """Do the work that was added, until told to stop.

    SIGTERM or Ctrl-C lets running chunks finish; any number of workers may share a home on one machine.
    """
    session.remark(("working; Ctrl-C stops after the running chunks", DONE))
    code = opened(session).work(slots=slots, lanes=_names(lanes), until_idle=until_idle)
    if session.json:
        session.message("summary", code=code, resumable=code in (130, 143))
    return code


@verb("estimate", "rushes estimate ~/Films", "rushes estimate long.mkv --profile high_quality --json")
@_PATHS
@wishes
@click.pass_obj
def estimate(session: Session, /, paths: Sequence[str], **words: Any) -> int:
    """Say how long a run would take on this machine.

    From what was measured here before; what was never done here is tried on a few seconds of the footage first.
    """
    found = opened(session).estimate(paths, wish_of(words))
    if session.json:
        session.document([_estimate_doc(e) for e in found])
    else:
        _estimate_table(session, found)
    bad = sum(e.error is not None for e in found)
    return 0 if not bad else 3 if bad < len(found) else 1


def _expecting(library: Library, kept: dict[str, tuple[float, float]]) -> Callable[[Job], tuple[float, float] | None]:
    def expect(job: Job) -> tuple[float, float] | None:
        try:
            found = library.expected(job)
        except RushesError:  # a busy store: the work matters more than its estimate
            return None
        if found:
            kept[job.id] = found
        return found

    return expect


def _tell_added(session: Session, one: Added) -> None:
    if one.error and session.json:
        session.message("error", path=one.path, message=str(one.error), hint=one.error.advice)
    elif one.error:
        trouble.show(session.err, str(one.error), do=one.error.advice)
    elif one.job and session.json:
        session.message("job", path=one.path, job=one.job.id, created=one.created, state=one.job.state)
    elif one.job:
        finished = one.job.state is JobState.COMPLETED
        word = "added" if one.created else "finished already" if finished else "there already"
        session.out.line(f"{one.job.id}  {one.job.name}", (f"  {word}", DONE))


def _code(added: Sequence[Added]) -> int:
    bad = [a.error for a in added if a.error]
    if not added:
        raise Refused("there is no footage at these paths", "Name files, or folders with footage.")
    if len(added) == len(bad) == 1 and bad[0]:
        return bad[0].exit_code
    return 0 if not bad else 3 if len(bad) < len(added) else 1


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for one in given for name in one.split(",") if name)


def _estimate_doc(e: Estimate) -> dict[str, object]:
    return {
        "path": e.path,
        "seconds": [round(e.p50, 1), round(e.p90, 1)],
        "chunks": e.chunks,
        "duration": e.duration,
        "stages": e.stages,
        "measured": e.measured,
        "error": str(e.error) if e.error else None,
    }


def _estimate_table(session: Session, found: Sequence[Estimate]) -> None:
    good = [e for e in found if not e.error]
    rows = [_estimate_row(e.path.name, [e]) for e in good] + ([_estimate_row("total", good)] if len(good) > 1 else [])
    session.out.table([Column("film", wide=True), Column("length", right=True), Column(""), Column("takes")], rows)
    if good:
        measured = "measured just now" if any(e.measured for e in good) else "from earlier work on this machine"
        session.remark((f"p50-p90, {measured}", DONE))
    for e in found:
        if e.error:
            trouble.show(session.err, f"{e.path.name}: {e.error}", do=e.error.advice)


def _estimate_row(name: str, some: Sequence[Estimate]) -> list[str]:
    film = length(int(sum(e.duration for e in some) * 1e6))
    takes = between((sum(e.p50 for e in some), sum(e.p90 for e in some)))
    return [name, film, many(sum(e.chunks for e in some), "chunk"), takes]


COMMANDS = {"run": run, "add": add, "worker": worker, "estimate": estimate}
