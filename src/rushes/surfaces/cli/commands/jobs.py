"""Jobs: watch them, ask why they wait, and steer them."""

import json
from collections import Counter
from collections.abc import Sequence

import click

from rushes.domain.job import Job, JobState
from rushes.domain.task import Task, TaskState
from rushes.ledger.port import Page
from rushes.library import Library
from rushes.surfaces.cli.command import Group, verb
from rushes.surfaces.cli.commands.history import events
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.screen import DONE, HEAD, NOW, TROUBLE, Column, Part, Screen
from rushes.surfaces.cli.session import Session, plain
from rushes.surfaces.cli.text import lasted, many
from rushes.surfaces.cli.times import moment, seconds_between
from rushes.surfaces.cli.views.states import SHOWN, Hands, StateWord, hands, page_of, part, who_does_it
from rushes.surfaces.cli.views.video_line import facts_of, header, recipe_of

_JOB = click.argument("job")


@verb("ls", "rushes jobs ls", "rushes jobs ls --state failed", "rushes jobs ls --json | jq '.jobs[].id'")
@click.option("--state", type=StateWord(), metavar="STATE", help=f"Only these: {', '.join(SHOWN)}.")
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1, 1000), metavar="N", help="At most this many."
)
@click.option("--cursor", default="", metavar="MARK", help="Go on where an earlier list ended.")
@click.pass_obj
def ls(session: Session, state: str | None, limit: int, cursor: str) -> None:
    """List jobs, newest first.

    A job is running while a worker has a part of it in hand, and waiting while nobody has.
    """
    library = opened(session)
    now = hands(library.home.ledger.workers())
    page = _page(library, state, now, cursor, limit)
    if session.json:
        session.document({"jobs": [_doc(j) | {"word": now.word(j)} for j in page.rows], "cursor": page.cursor})
        return
    columns = [Column("job"), Column("name", wide=True), Column("recipe"), Column("tasks", right=True), Column("")]
    session.out.table(columns, [_row(job, now) for job in page.rows])
    if not page.rows:
        session.remark(f"no job is {state}: rushes jobs ls" if state else "no jobs; begin with: rushes run PATH")
    if page.cursor:
        only = f" --state {state}" if state else ""
        session.remark((f"more: rushes jobs ls{only} --cursor {page.cursor}", DONE))


@verb("show", "rushes jobs show job_7f3k", "rushes jobs show job_7f3k --json")
@_JOB
@click.pass_obj
def show(session: Session, job: str) -> None:
    """Show one job, stage by stage."""
    library = opened(session)
    row = library.job(job)
    tasks = library.tasks(row.id)
    if session.json:
        session.document(_doc(row) | {"stages": _stages(tasks), "tasks": [_task_doc(t) for t in tasks]})
        return
    session.out.line((header(row), HEAD), (f"  {row.id}", DONE))
    word = hands(library.home.ledger.workers()).word(row)
    session.out.line(part(word), f"  {recipe_of(row)}", (_dates(row, session.out), DONE))
    columns = [Column("stage"), Column("done", right=True), Column("", wide=True)]
    session.out.table(columns, [_stage_row(name, states) for name, states in _stages(tasks).items()])
    if row.counts.failures or row.counts.losses:
        session.out.line((f"{many(row.counts.failures, 'failure')}, {many(row.counts.losses, 'loss', 'losses')}", DONE))
    _hint(session, row)


@verb("why", "rushes jobs why job_7f3k", "rushes jobs why job_7f3k --json")
@_JOB
@click.pass_obj
def why(session: Session, job: str) -> None:
    """Say what a job waits for.

    Every part of it that does not run has one reason.
    """
    library = opened(session)
    row = library.job(job)
    reasons = library.why(row.id)
    if session.json:
        session.document({"job": row.id, "state": row.state, "reasons": reasons})
        return
    waiting = sum(r.tasks for r in reasons)
    running = max(0, row.counts.total - row.counts.done - waiting)
    said = f", {running} running" if running else ""
    rest = f"; {waiting} not running" if waiting else ""
    session.out.line(f"{row.counts.done} of {many(row.counts.total, 'task')} done{said}{rest}")
    for r in reasons:
        session.out.block(f"{r.tasks:>4}  {r.stage}", "", f"{r.reason}; {r.detail}" if r.detail else str(r.reason), 18)


@verb("pause", "rushes jobs pause job_7f3k", "rushes jobs pause job_7f3k --now")
@_JOB
@click.option("--now", is_flag=True, help="Give running chunks back instead of finishing them.")
@click.pass_obj
def pause(session: Session, job: str, now: bool) -> None:
    """Start nothing new of a job; running chunks finish."""
    _said(session, opened(session).pause(job, now=now), "paused", "rushes jobs resume")


@verb("resume", "rushes jobs resume job_7f3k")
@_JOB
@click.pass_obj
def resume(session: Session, job: str) -> None:
    """Go on after a pause."""
    _said(session, opened(session).resume(job), "goes on", "rushes jobs why")


@verb("cancel", "rushes jobs cancel job_7f3k")
@_JOB
@click.pass_obj
def cancel(session: Session, job: str) -> None:
    """Stop a job for good; what is done stays.

    Nothing of it commits from now on; rushes jobs retry brings it back.
    """
    _said(session, opened(session).cancel(job), "cancelled", "rushes jobs retry")


@verb("retry", "rushes jobs retry job_7f3k", "rushes jobs retry job_7f3k --stage transcribe")
@_JOB
@click.option("--stage", default="", metavar="STAGE", help="Only tasks of this stage.")
@click.pass_obj
def retry(session: Session, job: str, stage: str) -> None:
    """Try again now what failed.

    What waits for its next try waits no more, and a cancelled job goes on.
    """
    library = opened(session)
    row = library.job(job)
    tasks = library.retry(row.id, stage)
    now = library.job(row.id)
    back = row.state is JobState.CANCELLED and now.state is not JobState.CANCELLED
    if session.json:
        session.document({"job": row.id, "tasks": tasks, "back": back, "state": now.state})
        return
    again = f"{many(len(tasks), 'task')} of {row.name} will be tried again" if tasks else "nothing to retry"
    session.out.line(
        f"{row.name}: goes on, {now.counts.done} of {many(now.counts.total, 'task')} done" if back else again
    )
    if tasks or back:
        session.remark((who_does_it(library.home.ledger.workers()), DONE))


def _page(library: Library, state: str | None, now: Hands, cursor: str, limit: int) -> Page[Job]:
    if state == "running":  # no more than there are slots
        jobs = [library.home.ledger.job(job) for job in now.jobs]
        rows = [j for j in jobs if j.owner == library.home.settings.owner and not j.paused]
        return Page(tuple(sorted(rows, key=lambda j: (j.created_at, j.id), reverse=True)))
    if state:
        return page_of(lambda s, at: library.jobs(s, at, limit), state, now, cursor)
    return library.jobs(None, cursor, limit)


def _row(job: Job, now: Hands) -> list[Part]:
    return [job.id, job.name, recipe_of(job), f"{job.counts.done}/{job.counts.total}", part(now.word(job))]


def _doc(job: Job) -> dict[str, object]:
    doc: dict[str, object] = plain(job)
    payload = json.loads(job.payload) if job.payload else {}
    return doc | {"payload": payload, "facts": dict(facts_of(job))}


def _task_doc(task: Task) -> dict[str, object]:
    doc: dict[str, object] = plain(task)
    doc.pop("spec")
    return doc


def _stages(tasks: Sequence[Task]) -> dict[str, Counter[str]]:
    stages: dict[str, Counter[str]] = {}
    for task in tasks:
        stages.setdefault(task.stage, Counter())[str(task.state)] += 1
    return stages


def _stage_row(name: str, states: Counter[str]) -> list[Part | Sequence[Part]]:
    done, total = states[TaskState.DONE], sum(states.values())
    styles = {TaskState.LEASED: NOW, TaskState.DEAD: TROUBLE}
    rest: list[Part] = [
        (f"{states[s]} {s}  ", styles.get(s, DONE)) for s in TaskState if states[s] and s is not TaskState.DONE
    ]
    return [(name, DONE if done == total else ""), f"{done}/{total}", rest]


def _dates(job: Job, screen: Screen) -> str:
    if not job.started_at:
        return f"  added {moment(job.created_at, screen)}"
    took = f", took {lasted(seconds_between(job.started_at, job.finished_at))}" if job.finished_at else ""
    return f"  began {moment(job.started_at, screen)}{took}"


def _hint(session: Session, job: Job) -> None:
    if job.state is JobState.FAILED:
        session.remark((f"next: rushes jobs why {job.id}", DONE))
    elif job.state is JobState.COMPLETED:
        session.remark((f"next: rushes show {facts_of(job).get('video', '')}", DONE))
    else:
        session.remark((f"why it waits: rushes jobs why {job.id}", DONE))


def _said(session: Session, job: Job, word: str, then: str) -> None:
    if session.json:
        session.document(_doc(job))
    else:
        session.out.line(f"{job.name}: {word}")
        session.remark((f"next: {then} {job.id}", DONE))


jobs = Group("jobs", "Watch and steer jobs.", [ls, show, events, why, pause, resume, cancel, retry])
COMMANDS = {"jobs": jobs}
