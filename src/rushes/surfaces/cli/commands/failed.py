"""Failed tasks by class: ls, rates, retry, discard."""

from collections.abc import Mapping
from dataclasses import asdict

import click

from rushes.domain.task import Task
from rushes.library.access.audit import Audit
from rushes.library.jobs import Cause, FailureGroup, StageRates
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import DONE, TROUBLE, Column, Screen
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.rows import next_step
from rushes.surfaces.words import date_time, plural

_CLASS = click.option("--class", "kind", default="", metavar="NAME", help="Only this class, e.g. BadMedia.")
CAUSES, TASKS = 5, 3  # shown of a class, and of a cause


@command("ls", "rushes failed ls", "rushes failed ls --class BadMedia --verbose")
@_CLASS
def ls(session: Session, kind: str) -> None:
    """List failed tasks by class, with the cause and what to do.

    The newest cause comes first; --verbose adds the last log lines of each task.
    """
    library = open_library(session)
    groups = library.jobs.failed.groups(kind)
    session.rows("failure", [_doc(g) for g in groups])
    if not groups:
        session.line("no failed tasks")
    for group in groups if not session.json else ():
        shown = {t.job for cause in group.causes[:CAUSES] for t in cause.tasks[:TASKS]}
        _report(session, group, {job: library.jobs.get(job).name for job in shown})
    if groups:
        session.remark(("next: rushes failed retry, or rushes failed discard (--class NAME for one class)", DONE))


@command("rates", "rushes failed rates", "rushes failed rates --json")
def rates(session: Session) -> None:
    """Show how often each stage fails and is retried."""
    found = open_library(session).jobs.stage_rates()
    session.rows("rate", [asdict(one) for one in found])
    names = ("stage", "attempts", "failed", "retried", "gave up", "failure rate", "seconds")
    columns = [Column(names[0], wide=True), *(Column(name, right=True) for name in names[1:])]
    session.table(columns, [_rate_row(one) for one in found])
    if not found:
        session.line("nothing has run yet")


@command("retry", "rushes failed retry", "rushes failed retry --class ModelMissing")
@_CLASS
def retry(session: Session, kind: str) -> None:
    """Retry failed tasks, all or one class."""
    library = open_library(session)
    tasks = library.jobs.failed.retry_all(kind)
    Audit(library.home).write_here("failed tasks handled", f"retry {kind}".strip())
    session.document({"tasks": tasks})
    session.line(f"{plural(len(tasks), 'task')} will be retried" if tasks else "nothing to retry")
    if tasks:
        session.remark((next_step(library.jobs.workers()), DONE))


@command("discard", "rushes failed discard --class BadMedia")
@_CLASS
def discard(session: Session, kind: str) -> None:
    """Dismiss failed tasks, all or one class.

    They stay as they are and are no longer listed.
    """
    library = open_library(session)
    count = len(library.jobs.failed.dismiss_all(kind))
    Audit(library.home).write_here("failed tasks handled", f"discard {kind}".strip())
    session.document({"discarded": count})
    session.line(f"{plural(count, 'task')} dismissed")


def _report(session: Session, group: FailureGroup, names: Mapping[str, str]) -> None:
    screen = session.out
    screen.line((group.kind, TROUBLE), f"  {plural(len(group.tasks), 'task')}")
    for cause in group.causes[:CAUSES]:
        count = f"{len(cause.tasks)} times: " if len(cause.tasks) > 1 else ""
        screen.block("why", DONE, f"{count}{cause.message}")
        screen.block("means", DONE, cause.verdict)
        screen.block("do", DONE, cause.hint)
        for task in cause.tasks[:TASKS]:
            _report_task(session, task, names[task.job])
        _more(screen, len(cause.tasks) - TASKS, "task")
    _more(screen, len(group.causes) - CAUSES, "other cause")


def _report_task(session: Session, task: Task, name: str) -> None:
    where = task.stage if task.chunk is None else f"{task.stage} chunk {task.chunk}"
    when = f"  {date_time(task.finished_at, local=session.out.terminal)}" if task.finished_at else ""
    session.block("", DONE, f"{name}  {where}  {task.job}{when}")
    for line in task.failure.lines[-10:] if session.verbose and task.failure else ():
        session.block("", DONE, f"  {line}")


def _rate_row(one: StageRates) -> list[str]:
    seconds = "" if one.seconds is None else f"{one.seconds:.1f}"
    counts = [str(n) for n in (one.attempts, one.failures, one.retries, one.dead)]
    return [one.stage, *counts, f"{one.failure_rate:.1%}", seconds]


def _more(screen: Screen, count: int, what: str) -> None:
    if count > 0:
        screen.block("", DONE, f"and {plural(count, f'more {what}')}: rushes failed ls --json")


def _doc(group: FailureGroup) -> dict[str, object]:
    return {"class": group.kind, "count": len(group.tasks), "causes": [_cause_doc(c) for c in group.causes]}


def _cause_doc(cause: Cause) -> dict[str, object]:
    names = ("id", "job", "stage", "chunk", "failures", "losses", "finished_at", "failure")
    tasks = [{n: getattr(t, n) for n in names} for t in cause.tasks]
    words = {"message": cause.message, "hint": cause.hint, "verdict": cause.verdict}
    return words | {"count": len(cause.tasks), "tasks": tasks}


failed = CliGroup("failed", "List, retry or dismiss tasks that failed.", [ls, rates, retry, discard])
