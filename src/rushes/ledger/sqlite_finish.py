"""Completion on SQLite: done, results, count-down, events, counters and debts in one transaction."""

import json
from collections import defaultdict
from collections.abc import Sequence

from rushes.domain.event import EventType
from rushes.domain.task import Finish, Said
from rushes.ledger.port import Completed
from rushes.ledger.sqlite_jobs import FIRST, PLACES, JobRows, OpenJob
from rushes.ledger.sqlite_store import Row, Turn
from rushes.ledger.sqlite_take import count_down, open_plan
from rushes.ledger.sqlite_work import standing

Won = dict[tuple[str, int], int]  # (task, fence) of each lease that counted -> the task's key


def complete(turn: Turn, worker: str, finishes: Sequence[Finish]) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not."""
    won = _win(turn, worker, finishes)
    if not won:
        return Completed(_said(turn, finishes, won))
    jobs = JobRows(turn)
    jobs.load({key >> PLACES for key in won.values()})
    opened: list[str] = []
    for number, group in _by_job(finishes, won).items():
        opened += _count(turn, jobs.of(number << PLACES), worker, group)
    met = turn.column("meet", json.dumps(list(won.values())))
    ready = count_down(turn, jobs, met)
    jobs.save()
    return Completed(_said(turn, finishes, won), (*opened, *ready))


def _win(turn: Turn, worker: str, finishes: Sequence[Finish]) -> Won:
    """One statement for all that share a fence: nearly always one."""
    row = turn.one("worker_row", worker)
    if row is None:
        return {}
    groups: dict[tuple[int, bool], list[str]] = defaultdict(list)
    for finish in finishes:
        groups[finish.fence, finish.adopted].append(finish.task)
    won: Won = {}
    for (fence, adopted), tasks in groups.items():
        values = (int(adopted), turn.wall, json.dumps(tasks), fence, row[0])
        won.update(((id, fence), key) for key, id in turn.run("finish", *values))
    return won


def _by_job(finishes: Sequence[Finish], won: Won) -> dict[int, list[tuple[int, Finish]]]:
    """The finishes that counted by job, each once."""
    groups: dict[int, list[tuple[int, Finish]]] = defaultdict(list)
    left = dict(won)
    for finish in finishes:
        key = left.pop((finish.task, finish.fence), None)
        if key is not None:
            groups[key >> PLACES].append((key, finish))
    return groups


def _count(turn: Turn, job: OpenJob, worker: str, group: Sequence[tuple[int, Finish]]) -> tuple[str, ...]:
    """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
    job.done, job.live = job.done + len(group), job.live - len(group)
    _keep_results(turn, job, group)
    skip = len(job.id) + 1
    for type, adopted in ((EventType.DONE, False), (EventType.ADOPTED, True)):
        each = [[f.task[skip:], f.fence, f.seconds] for _, f in group if f.adopted is adopted]
        job.tell_each(type, turn.wall, each, worker)
    first = next((f for key, f in group if not key & FIRST), None)
    if first is None:
        return ()
    job.chunking = 0
    return () if job.opened else open_plan(turn, job, first.fence)


def _keep_results(turn: Turn, job: OpenJob, group: Sequence[tuple[int, Finish]]) -> None:
    results = [r for _, f in group for r in f.results]
    rows: list[Row] = [
        (job.owner, r.key, r.output, r.manifest_sha256, r.size, r.count, r.schema_version, r.publishes) for r in results
    ]
    turn.many("result_add", rows)
    debts: list[Row] = [(job.owner, job.id, r.key) for r in results if r.publishes]
    if debts:
        turn.many("debt_add", debts)


def _said(turn: Turn, finishes: Sequence[Finish], won: Won) -> tuple[Said, ...]:
    if len(won) == len(finishes):
        return (Said.OK,) * len(finishes)
    rows = standing(turn, (f.task for f in finishes))
    return tuple(
        Said.OK if (f.task, f.fence) in won else rows[f.task].said(f.fence, "done") if f.task in rows else Said.LOST
        for f in finishes
    )
