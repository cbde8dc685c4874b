"""Completion on SQLite: done, results, count-down, events, counters and debts in one transaction."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, repeat

from rushes.domain.result import Result
from rushes.domain.task import Finish
from rushes.ledger import sqlite_results
from rushes.ledger.open_job import FIRST, PLACES, OpenJob
from rushes.ledger.port import Completed
from rushes.ledger.runs import Run, answers, by_job, finished_runs, how_many, tell_runs
from rushes.ledger.sqlite_jobs import JobRows
from rushes.ledger.sqlite_store import Row, Transaction, encode
from rushes.ledger.sqlite_take import count_down, open_plan
from rushes.ledger.sqlite_work import DONE, standing

UNKNOWN = -1  # the key of no task


def complete(turn: Transaction, worker: str, finishes: Sequence[Finish], known: dict[str, int]) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not.

    `known` has the keys of tasks that were claimed here: a task's key never changes.
    """
    won, look = _win(turn, worker, finishes, known), partial(standing, turn)
    if not won:
        return Completed(answers(finishes, won, look, *DONE))
    down = _dependants(turn, won)  # before a plan is opened
    jobs, groups = JobRows(turn), by_job(won)
    jobs.load(groups)
    ready: list[str] = []
    for number, group in groups.items():
        ready += _count(turn, jobs.of(number << PLACES), worker, group)
    _keep_results(turn, jobs, groups)
    ready += count_down(turn, jobs, down)
    jobs.save()
    return Completed(answers(finishes, won, look, *DONE), tuple(ready))


def _win(turn: Transaction, worker: str, finishes: Sequence[Finish], known: dict[str, int]) -> list[Run]:
    """All are done, as nearly always; else look which leases count, and only they are."""
    number = turn.column("worker_row", worker)
    if not number or not finishes:
        return []
    keys = _keys(turn, [finish.task for finish in finishes], known)
    won = finished_runs(keys, finishes)
    turn.run("mark")
    if _finish(turn, won, number[0]) < len(keys):
        turn.run("back")
        held = _held(turn, keys, finishes, number[0])
        won = finished_runs(list(held), list(held.values()))
        _finish(turn, won, number[0])
    turn.run("unmark")
    turn.many("hold_drop", [(number[0], run.first, run.last) for run in won])
    return won


def _keys(turn: Transaction, tasks: Sequence[str], known: dict[str, int]) -> list[int]:
    keys = list(map(known.pop, tasks, repeat(UNKNOWN)))
    if UNKNOWN not in keys:
        return keys
    found: dict[str, int] = dict(turn.all("keys", encode(tasks)))
    return [found.get(task, UNKNOWN) for task in tasks]


def _finish(turn: Transaction, runs: Sequence[Run], worker: int) -> int:
    """How many were leased to this worker at the fence of their finish, and are done now."""
    rows: list[Row] = [(DONE[run.adopted], turn.wall, run.first, run.last, run.fence, worker) for run in runs]
    return turn.many("finish", rows)


def _held(turn: Transaction, keys: Sequence[int], finishes: Sequence[Finish], worker: int) -> dict[int, Finish]:
    fences: dict[int, int] = dict(turn.all("holds", encode(keys), worker))
    held: dict[int, Finish] = {}
    for key, finish in zip(keys, finishes, strict=True):
        if fences.get(key) == finish.fence:
            held.setdefault(key, finish)
    return held


def _dependants(turn: Transaction, won: Sequence[Run]) -> list[Row]:
    """Who waits for these tasks, and for how many of them."""
    who: str | None = turn.column("dependants", encode([run[:2] for run in won]))[0]
    return [(int(task), n) for task, n in Counter(who.split(",")).items()] if who else []


def _count(turn: Transaction, job: OpenJob, worker: str, group: Sequence[Run]) -> tuple[str, ...]:
    """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
    many = how_many(group)
    job.done, job.live = job.done + many, job.live - many
    tell_runs(job, turn.wall, worker, group)
    first = next((run for run in group if not run.first & FIRST), None)
    if first is None:
        return ()
    job.chunking = False
    return () if job.opened else open_plan(turn, job, first.fence)


def _keep_results(turn: Transaction, jobs: JobRows, groups: Mapping[int, Sequence[Run]]) -> None:
    made: dict[str, list[Result]] = defaultdict(list)
    debts: list[Row] = []
    for number, group in groups.items():
        job = jobs.of(number << PLACES)
        results = list(chain.from_iterable(chain.from_iterable(run.results for run in group)))
        made[job.owner] += results
        debts += [(job.owner, job.id, result.key) for result in results if result.publishes]
    for owner, results in made.items():
        sqlite_results.keep(turn, owner, results)
    turn.many("debt_add", debts)
