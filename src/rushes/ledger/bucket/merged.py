"""Answers of many small ledgers as one: sorted together, paged together. Pure but for the questions."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.task import Task, TaskState
from rushes.domain.worker import Worker
from rushes.ledger.pages import every
from rushes.ledger.port import Ledger, Page, SweepResult

Readers = Callable[[Collection[str]], Iterable[tuple[str, Ledger]]]  # of these films, in this order, opened one by one


def sweeps(swept: Sequence[SweepResult]) -> SweepResult:
    """What all sweeps found together."""
    due = [one.next_due for one in swept if one.next_due is not None]
    return SweepResult(
        ready=tuple(task for one in swept for task in one.ready),
        debts=tuple(debt for one in swept for debt in one.debts),
        released=sum(one.released for one in swept),
        next_due=min(due, default=None),
        quiet=all(one.quiet for one in swept),
    )


def jobs(
    ledgers: Iterable[Ledger],
    owner: str,
    state: JobState | None,
    queue: str,
    *,
    oldest_first: bool,
    cursor: str,
    limit: int,
) -> Page[Job]:
    """By time of creation, finished states by time of finish; a cursor is the last row's time and id."""

    def moment(job: Job) -> str:
        return (job.finished_at or "") if state in FINAL and not queue else job.created_at

    found = [job for one in ledgers for job in every(partial(one.jobs, owner, state, oldest_first, queue=queue))]
    found.sort(key=moment, reverse=not oldest_first)  # stable: of one moment they stay in the order of their ledger
    begin = _after(cursor, found, moment, oldest_first) if cursor else 0
    rows, more = found[begin : begin + limit], len(found) > begin + limit
    return Page(tuple(rows), json.dumps([moment(rows[-1]), rows[-1].id]) if more else "")


def _after(cursor: str, found: Sequence[Job], moment: Callable[[Job], str], oldest_first: bool) -> int:
    """Where a list goes on: behind the row that the cursor names, or behind its moment if it is gone."""
    last, id = json.loads(cursor)
    places = [place for place, job in enumerate(found) if job.id == id]
    before = [job for job in found if (moment(job) <= last if oldest_first else moment(job) >= last)]
    return places[0] + 1 if places else len(before)


def tasks(
    films: Iterable[str],
    readers: Readers,
    state: TaskState | None,
    stage: str,
    ids: Collection[str],
    *,
    cursor: str,
    limit: int,
) -> Page[Task]:
    """Film after film; a cursor names the film and the place in it."""
    names = sorted(films)
    film, inner = json.loads(cursor) if cursor else ("", "")
    rows: list[Task] = []
    for name, ledger in readers(names[names.index(film) if film in names else 0 :]):
        page = ledger.tasks("", state, stage, ids, inner if name == film else "", limit - len(rows))
        rows += page.rows
        if page.cursor:
            return Page(tuple(rows), json.dumps([name, page.cursor]))
        if len(rows) >= limit and name != names[-1]:
            return Page(tuple(rows), json.dumps([names[names.index(name) + 1], ""]))
    return Page(tuple(rows))


def parse_cursors(text: str) -> dict[str, str]:
    """One cursor for each film; none if the text is of another ledger."""
    try:
        known = json.loads(text or "{}")
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def format_cursors(cursors: Mapping[str, str]) -> str:
    """As one text."""
    return json.dumps(cursors, sort_keys=True, separators=(",", ":"))


def workers(here: Sequence[Worker], films: Iterable[Sequence[Worker]]) -> tuple[Worker, ...]:
    """Every worker once, as its own machine knows it if that is ours, with what it holds in all films."""
    found = {worker.incarnation.id: worker for worker in here}
    for worker in (worker for some in films for worker in some):
        before = found.setdefault(worker.incarnation.id, worker)
        if before is not worker:
            found[worker.incarnation.id] = replace(before, held=(*before.held, *worker.held))
    return tuple(found.values())
