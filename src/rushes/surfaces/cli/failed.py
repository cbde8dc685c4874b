"""Work that gave up, by class: look at it, retry it, put it away."""

import click

from rushes.library.failed import FailureGroup
from rushes.surfaces.cli.opened import opened
from rushes.surfaces.cli.screen import DONE, TROUBLE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import many
from rushes.surfaces.cli.verb import Group, verb

_CLASS = click.option("--class", "kind", default="", metavar="NAME", help="Only this class, like BadMedia.")
TOLD = 3  # tasks named per class


@verb("ls", "rushes failed ls", "rushes failed ls --class BadMedia --verbose")
@_CLASS
@click.pass_obj
def ls(session: Session, kind: str) -> None:
    """Show what failed for good, by class: how often, why, and what to do."""
    library = opened(session)
    groups = library.failed(kind)
    if session.json:
        session.document([_doc(g) for g in groups])
        return
    if not groups:
        session.out.line("nothing failed")
    for group in groups:
        _tell(session, group, {t.job: library.job(t.job).name for t in group.tasks[:TOLD]})


@verb("retry", "rushes failed retry", "rushes failed retry --class ModelMissing")
@_CLASS
@click.pass_obj
def retry(session: Session, kind: str) -> None:
    """Try it again, all or one class."""
    tasks = opened(session).retry_failed(kind)
    if session.json:
        session.document({"tasks": tasks})
        return
    session.out.line(f"{many(len(tasks), 'task')} will be tried again" if tasks else "nothing to retry")
    if tasks:
        session.remark(("next: rushes worker --until-idle", DONE))


@verb("discard", "rushes failed discard --class BadMedia")
@_CLASS
@click.pass_obj
def discard(session: Session, kind: str) -> None:
    """Put it away: it stays as it is but is not shown any more."""
    count = opened(session).discard_failed(kind)
    if session.json:
        session.document({"discarded": count})
    else:
        session.out.line(f"{many(count, 'task')} put away")


def _tell(session: Session, group: FailureGroup, names: dict[str, str]) -> None:
    screen = session.out
    screen.line((f"{group.kind}", TROUBLE), f"  {many(len(group.tasks), 'task')}", (f"  {group.verdict}", DONE))
    screen.block("why", DONE, group.message)
    screen.block("do", DONE, group.hint)
    for task in group.tasks[:TOLD]:
        where = task.stage if task.chunk is None else f"{task.stage} chunk {task.chunk}"
        screen.block("", DONE, f"{names[task.job]}  {where}  {task.id}")
        for line in task.failure.lines[-10:] if session.verbose and task.failure else ():
            screen.block("", DONE, f"  {line}")
    if len(group.tasks) > TOLD:
        screen.block("", DONE, f"and {len(group.tasks) - TOLD} more")


def _doc(group: FailureGroup) -> dict[str, object]:
    names = ("id", "job", "stage", "chunk", "failures", "losses", "failure")
    tasks = [{n: getattr(t, n) for n in names} for t in group.tasks]
    return {
        "class": group.kind,
        "count": len(group.tasks),
        "message": group.message,
        "hint": group.hint,
        "verdict": group.verdict,
        "tasks": tasks,
    }


failed = Group("failed", "Work that gave up: look, retry, put away.", [ls, retry, discard])
COMMANDS = {"failed": failed}
