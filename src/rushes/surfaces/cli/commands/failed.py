"""Work that gave up, by class: look at it, retry it, put it away."""

from collections.abc import Mapping

import click

from rushes.domain.task import Task
from rushes.jobs.dead_letters import Cause, FailureGroup
from rushes.surfaces.cli.command import Group, verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.screen import DONE, TROUBLE, Screen
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import many
from rushes.surfaces.cli.times import moment
from rushes.surfaces.cli.views.states import who_does_it

_CLASS = click.option("--class", "kind", default="", metavar="NAME", help="Only this class, like BadMedia.")
CAUSES, TASKS = 5, 3  # told of a class, named of a cause


@verb("ls", "rushes failed ls", "rushes failed ls --class BadMedia --verbose")
@_CLASS
@click.pass_obj
def ls(session: Session, kind: str) -> None:
    """Show what failed for good, and why.

    The newest reason comes first; --verbose adds the last lines of each log.
    """
    library = opened(session)
    groups = library.failed(kind)
    if session.json:
        session.rows("failure", [_doc(g) for g in groups])
        return
    if not groups:
        session.out.line("nothing failed")
    for group in groups:
        shown = {t.job for cause in group.causes[:CAUSES] for t in cause.tasks[:TASKS]}
        _tell(session, group, {job: library.home.ledger.job(job).name for job in shown})
    if groups:
        session.remark(("next: rushes failed retry, or rushes failed discard; --class chooses", DONE))


@verb("retry", "rushes failed retry", "rushes failed retry --class ModelMissing")
@_CLASS
@click.pass_obj
def retry(session: Session, kind: str) -> None:
    """Try it again, all or one class."""
    library = opened(session)
    tasks = library.retry_failed(kind)
    if session.json:
        session.document({"tasks": tasks})
        return
    session.out.line(f"{many(len(tasks), 'task')} will be tried again" if tasks else "nothing to retry")
    if tasks:
        session.remark((who_does_it(library.home.ledger.workers()), DONE))


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


def _tell(session: Session, group: FailureGroup, names: Mapping[str, str]) -> None:
    screen = session.out
    screen.line((group.kind, TROUBLE), f"  {many(len(group.tasks), 'task')}")
    for cause in group.causes[:CAUSES]:
        count = f"{len(cause.tasks)} times: " if len(cause.tasks) > 1 else ""
        screen.block("why", DONE, f"{count}{cause.message}")
        screen.block("means", DONE, cause.verdict)
        screen.block("do", DONE, cause.hint)
        for task in cause.tasks[:TASKS]:
            _tell_task(session, task, names[task.job])
        _more(screen, len(cause.tasks) - TASKS, "task")
    _more(screen, len(group.causes) - CAUSES, "other reason")


def _tell_task(session: Session, task: Task, name: str) -> None:
    where = task.stage if task.chunk is None else f"{task.stage} chunk {task.chunk}"
    when = f"  {moment(task.finished_at, session.out)}" if task.finished_at else ""
    session.out.block("", DONE, f"{name}  {where}  {task.job}{when}")
    for line in task.failure.lines[-10:] if session.verbose and task.failure else ():
        session.out.block("", DONE, f"  {line}")


def _more(screen: Screen, count: int, what: str) -> None:
    if count > 0:
        screen.block("", DONE, f"and {many(count, f'more {what}')}: rushes failed ls --json")


def _doc(group: FailureGroup) -> dict[str, object]:
    return {"class": group.kind, "count": len(group.tasks), "causes": [_cause_doc(c) for c in group.causes]}


def _cause_doc(cause: Cause) -> dict[str, object]:
    names = ("id", "job", "stage", "chunk", "failures", "losses", "finished_at", "failure")
    tasks = [{n: getattr(t, n) for n in names} for t in cause.tasks]
    words = {"message": cause.message, "hint": cause.hint, "verdict": cause.verdict}
    return words | {"count": len(cause.tasks), "tasks": tasks}


failed = Group("failed", "Work that gave up: look, retry, put away.", [ls, retry, discard])
COMMANDS = {"failed": failed}
