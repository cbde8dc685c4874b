"""Jobs: ls, show, why, pause, resume, cancel, retry."""

import json
from collections import Counter
from collections.abc import Sequence

import click

from rushes.domain.job import Job, JobCommand, JobState
from rushes.domain.task import Task
from rushes.library import Library
from rushes.library.access.audit import Audit
from rushes.library.jobs import Page
from rushes.surfaces import words
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.commands.job_events import events
from rushes.surfaces.cli.options import LIMIT, cursor_of, more_remark, open_library, page_options
from rushes.surfaces.cli.screen import DONE, HEAD, NOW, TROUBLE, Column, Part, Screen
from rushes.surfaces.cli.session import Session, to_json
from rushes.surfaces.cli.views.rows import StateWord, facts_of, header, next_step, page_of, recipe_of, state_part

_JOB = click.argument("job")


@command("ls", "rushes jobs ls", "rushes jobs ls --state failed", "rushes jobs ls --json | jq '.jobs[].id'")
@click.option("--state", type=StateWord(), metavar="STATE", help=f"Only these: {', '.join(words.JOB_WORDS)}.")
@page_options
def ls(session: Session, state: str | None, limit: int, page: int, cursor: str) -> None:
    """List jobs, newest first.

    A job is running while a worker holds one of its tasks, and waiting while none does.
    """
    library = open_library(session)
    now = words.active_jobs(library.jobs.workers())
    begin = cursor_of(page, cursor, lambda at: _page(library, state, now, at, limit).cursor)
    found = _page(library, state, now, begin, limit)
    session.document({"jobs": [_doc(j) | {"word": now.word(j)} for j in found.rows], "cursor": found.cursor})
    columns = [Column("job"), Column("name", wide=True), Column("recipe"), Column("tasks", right=True), Column("")]
    session.table(columns, [_row(job, now) for job in found.rows])
    if not found.rows:
        session.remark(
            f"no job is {state}. List all with: rushes jobs ls" if state else "no jobs yet. Start with: rushes run PATH"
        )
    if found.cursor:
        only = f" --state {state}" if state else ""
        session.remark((more_remark(f"rushes jobs ls{only}", limit, LIMIT, page), DONE))


@command("show", "rushes jobs show job_7f3k", "rushes jobs show job_7f3k --json")
@_JOB
def show(session: Session, job: str) -> None:
    """Show one job, stage by stage."""
    library = open_library(session)
    row = library.jobs.find(job)
    tasks = library.jobs.tasks(row.id)
    session.document(_doc(row) | {"stages": _stages(tasks), "tasks": [_task_doc(t) for t in tasks]})
    session.line((header(row), HEAD), (f"  {row.id}", DONE))
    word = words.active_jobs(library.jobs.workers()).word(row)
    session.line(state_part(word), f"  {recipe_of(row)}", (_dates(row, session.out), DONE))
    columns = [Column("stage"), Column("done", right=True), Column("", wide=True)]
    session.table(columns, [_stage_row(name, states) for name, states in _stages(tasks).items()])
    if row.counts.failures or row.counts.losses:
        losses = words.plural(row.counts.losses, "lost attempt")
        session.line((f"{words.plural(row.counts.failures, 'failed attempt')}, {losses}", DONE))
    session.remark((_hint(row), DONE))


@command("why", "rushes jobs why job_7f3k", "rushes jobs why job_7f3k --json")
@_JOB
def why(session: Session, job: str) -> None:
    """Explain what a job is waiting for.

    Each task that is not running has exactly one reason.
    """
    library = open_library(session)
    row = library.jobs.find(job)
    reasons = library.jobs.why(row.id)
    session.document({"job": row.id, "state": row.state, "reasons": reasons})
    waiting = sum(r.tasks for r in reasons)
    running = max(0, row.counts.total - row.counts.done - waiting)
    now = f", {running} running" if running else ""
    rest = f"; {waiting} not running" if waiting else ""
    session.line(f"{row.counts.done} of {words.plural(row.counts.total, 'task')} done{now}{rest}")
    for r in reasons:
        session.block(f"{r.tasks:>4}  {r.stage}", "", f"{r.reason}; {r.detail}" if r.detail else str(r.reason), 18)


@command("pause", "rushes jobs pause job_7f3k", "rushes jobs pause job_7f3k --now")
@_JOB
@click.option("--now", is_flag=True, help="Give running chunks back instead of finishing them.")
def pause(session: Session, job: str, now: bool) -> None:
    """Pause a job; running chunks finish first."""
    _control(session, job, JobCommand.PAUSE_NOW if now else JobCommand.PAUSE, "paused", "rushes jobs resume")


@command("resume", "rushes jobs resume job_7f3k")
@_JOB
def resume(session: Session, job: str) -> None:
    """Resume a paused job."""
    _control(session, job, JobCommand.RESUME, "resumed", "rushes jobs why")


@command("cancel", "rushes jobs cancel job_7f3k")
@_JOB
def cancel(session: Session, job: str) -> None:
    """Cancel a job; finished results are kept.

    Running chunks stop without a result. Undo with: rushes jobs retry
    """
    _control(session, job, JobCommand.CANCEL, "cancelled", "rushes jobs retry")


@command("retry", "rushes jobs retry job_7f3k", "rushes jobs retry job_7f3k --stage transcribe")
@_JOB
@click.option("--stage", default="", metavar="STAGE", help="Only tasks of this stage.")
def retry(session: Session, job: str, stage: str) -> None:
    """Retry failed tasks of a job now.

    Tasks that wait for their next attempt start at once; a cancelled job continues.
    """
    library = open_library(session)
    row = library.jobs.find(job)
    tasks = library.jobs.retry(row.id, stage)
    Audit(library.home).write_here("job retried", f"{row.id} {stage}".strip())
    now = library.jobs.get(row.id)
    back = row.state is JobState.CANCELLED and now.state is not JobState.CANCELLED
    session.document({"job": row.id, "tasks": tasks, "back": back, "state": now.state})
    again = f"{words.plural(len(tasks), 'task')} of {row.name} will be retried" if tasks else "nothing to retry"
    session.line(
        f"{row.name}: continues, {now.counts.done} of {words.plural(now.counts.total, 'task')} done" if back else again
    )
    if tasks or back:
        session.remark((next_step(library.jobs.workers()), DONE))


def _control(session: Session, job: str, order: JobCommand, word: str, next_command: str) -> None:
    jobs = open_library(session).jobs
    row = jobs.command(jobs.find(job).id, order)
    Audit(jobs.home).write_here("job changed", f"{order.value} {row.id}")
    session.document(_doc(row))
    session.line(f"{row.name}: {word}")
    session.remark((f"next: {next_command} {row.id}", DONE))


def _page(library: Library, state: str | None, now: words.ActiveJobs, cursor: str, limit: int) -> Page[Job]:
    if state == "running":  # no more than there are slots
        rows = [j for j in library.jobs.get_many(now.hosts).values() if not j.paused]
        return Page(tuple(sorted(rows, key=lambda j: (j.created_at, j.id), reverse=True)))
    if state:
        return page_of(lambda s, at: library.jobs.page(s, at, limit), state, now, cursor)
    return library.jobs.page(None, cursor, limit)


def _row(job: Job, now: words.ActiveJobs) -> list[Part]:
    return [job.id, job.name, recipe_of(job), f"{job.counts.done}/{job.counts.total}", state_part(now.word(job))]


def _doc(job: Job) -> dict[str, object]:
    doc: dict[str, object] = to_json(job)
    payload = json.loads(job.payload) if job.payload else {}
    return doc | {"payload": payload, "facts": dict(facts_of(job))}


def _task_doc(task: Task) -> dict[str, object]:
    return {name: value for name, value in to_json(task).items() if name != "spec"}


def _stages(tasks: Sequence[Task]) -> dict[str, Counter[str]]:
    stages: dict[str, Counter[str]] = {}
    for task in tasks:
        stages.setdefault(task.stage, Counter())[words.task_word(task)] += 1
    return stages


def _stage_row(name: str, states: Counter[str]) -> list[Part | Sequence[Part]]:
    done, total = states["done"] + states["adopted"], sum(states.values())
    styles = {"leased": NOW, "backing off": NOW, "dead": TROUBLE}
    rest: list[Part] = [(f"{states[w]} {w}  ", styles.get(w, DONE)) for w in words.TASK_WORDS[1:] if states[w]]
    return [(name, DONE if done == total else ""), f"{done}/{total}", rest]


def _dates(job: Job, screen: Screen) -> str:
    if not job.started_at:
        return f"  added {words.date_time(job.created_at, local=screen.terminal)}"
    seconds = words.seconds_between(job.started_at, job.finished_at)
    took = "" if seconds is None else f", took {words.duration(seconds)}"
    return f"  started {words.date_time(job.started_at, local=screen.terminal)}{took}"


def _hint(job: Job) -> str:
    match job.state:
        case JobState.FAILED:
            return f"next: rushes jobs why {job.id}"
        case JobState.COMPLETED:
            video = facts_of(job).get("video")
            return f"next: rushes show {video}" if video else f"next: rushes jobs events {job.id} --output"
    return f"see why it waits: rushes jobs why {job.id}"


jobs = CliGroup("jobs", "List and control jobs.", [ls, show, events, why, pause, resume, cancel, retry])
