"""Taking footage in without working on it, and saying how long the work would take."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import click

from rushes.domain.errors import RushesError
from rushes.domain.job import JobState
from rushes.library import Estimate, IntakeResult
from rushes.surfaces.cli import errors
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.request_options import paths_argument, wish_of, wishes
from rushes.surfaces.cli.screen import DONE, NOW, Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import between, length, many, size
from rushes.surfaces.cli.views.states import who_does_it
from rushes.surfaces.cli.views.summary import tell_skipped


@verb("add", "rushes add ~/Films", "rushes add urgent.mp4 --priority 10", "rushes worker --until-idle")
@paths_argument
@wishes
@click.pass_obj
def add(session: Session, /, paths: Sequence[str], **words: Any) -> int:
    """Take footage in and leave the work to a worker.

    The same file with the same wish is the same job, however often it is added.
    """
    library = opened(session, create=True)
    added = library.add(paths, wish_of(words))
    for one in added:
        tell_added(session, one)
    tell_skipped(session, added)
    if session.json:
        session.message("summary", jobs=sum(a.created for a in added), errors=sum(a.error is not None for a in added))
    elif any(a.created for a in added):
        session.remark((who_does_it(library.home.ledger.workers()), DONE))
    return _code([one.error for one in added if not one.skipped])


@verb("estimate", "rushes estimate ~/Films", "rushes estimate long.mkv --profile high_quality --json")
@paths_argument
@wishes
@click.pass_obj
def estimate(session: Session, /, paths: Sequence[str], **words: Any) -> int:
    """Say how long a run would take on this machine.

    From what was measured here before; what was never done here is tried on a few seconds of the footage first.
    """
    found = opened(session, create=True).estimate(paths, wish_of(words), signals=True)
    if session.json:
        session.rows("estimate", [_estimate_doc(e) for e in found])
    else:
        _estimate_table(session, found)
    return _code([e.error for e in found])


def tell_added(session: Session, one: IntakeResult) -> None:
    """One path: its job, or why there is none."""
    if one.error and session.json:
        session.message("error", path=one.path, message=str(one.error), hint=one.error.advice)
    elif one.error:
        errors.show(session.err, str(one.error), do=one.error.advice)
    elif one.job and session.json:
        session.message("job", path=one.path, job=one.job.id, created=one.created, state=one.job.state)
    elif one.job:
        finished = one.job.state is JobState.COMPLETED
        word = "added" if one.created else "finished already" if finished else "there already"
        session.out.line(f"{one.job.id}  {one.job.name}", (f"  {word}", DONE))


def _code(errors: Sequence[RushesError | None]) -> int:
    """All well, some bad, nothing well; the only one's own."""
    bad = [e for e in errors if e]
    if len(errors) == len(bad) == 1:
        return bad[0].exit_code
    return 0 if not bad else 3 if len(bad) < len(errors) else 1


def _estimate_doc(e: Estimate) -> dict[str, object]:
    return {
        "path": e.path,
        "seconds": [round(e.p50, 1), round(e.p90, 1)],
        "chunks": e.chunks,
        "duration": e.duration,
        "stages": e.stages,
        "size": e.size,
        "unknown": e.unknown,
        "measured": e.measured,
        "error": str(e.error) if e.error else None,
    }


def _estimate_table(session: Session, found: Sequence[Estimate]) -> None:
    good = [e for e in found if not e.error]
    rows = [_estimate_row(PurePath(e.path).name, [e]) for e in good]
    rows += [_estimate_row("total", good)] if len(good) > 1 else []
    columns = [Column("film", wide=True), Column("length", right=True), Column(""), Column("takes"), Column("keeps")]
    session.out.table(columns, rows)
    if good:
        measured = "measured just now" if any(e.measured for e in good) else "from earlier work on this machine"
        session.remark((f"p50-p90, {measured}", DONE))
    unknown = sorted({stage for e in good for stage in e.unknown})
    if unknown:
        session.remark((f"without {', '.join(unknown)}: nothing is known of that on this machine yet", NOW))
    for e in found:
        if e.error:
            errors.show(session.err, errors.about(PurePath(e.path).name, str(e.error)), do=e.error.advice)


def _estimate_row(name: str, some: Sequence[Estimate]) -> list[str]:
    film = length(int(sum(e.duration for e in some) * 1e6))
    takes = between((sum(e.p50 for e in some), sum(e.p90 for e in some)))
    return [name, film, many(sum(e.chunks for e in some), "chunk"), takes, size(sum(e.size for e in some))]


COMMANDS = {"add": add, "estimate": estimate}
