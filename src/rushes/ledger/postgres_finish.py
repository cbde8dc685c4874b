"""Completion on PostgreSQL: done, results, count-down, events, counters and debts in one transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import NamedTuple, cast

from rushes.domain.result import Result
from rushes.domain.task import Finish
from rushes.ledger.open_job import PLACES, OpenJob, encode
from rushes.ledger.port import Completed
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.postgres_take import count_ready, open_plan
from rushes.ledger.postgres_work import standing
from rushes.ledger.runs import Run, answers, by_job, finished_runs, how_many, tell_runs
from rushes.postgres.columns import numbers, texts
from rushes.postgres.store import Cursor, Row, Transaction

Lease = tuple[int, int]  # the key of a task, and a fence
Question = tuple[Sequence[Run], Mapping[str, object]]  # runs of one fence, and how `finish` is asked for them


class Asked(NamedTuple):
    """Runs that were said to be done at one fence, and what will answer which are."""

    runs: Sequence[Run]
    answer: Cursor


class TooBold(Exception):
    """What was hoped for is not so, but it is written: the transaction must leave no trace."""


def complete(
    turn: Transaction, worker: str, finishes: Sequence[Finish], known: Mapping[str, int], *, bold: bool
) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not.

    `known` has the keys of tasks that were claimed here: a task's key never changes. Who is `bold` hopes that every
    lease counts, no result is there yet and no other job needs these tasks: all of it is written in one flight, the
    results before others must wait for the jobs.

    Raises:
        TooBold: it is not so.
    """
    keys, told = _by_lease(turn, finishes, known)
    runs, jobs = finished_runs(keys, told), JobRows(turn)
    if bold and runs and not any(run.adopted for run in runs):
        newly = _all_of_them(turn, jobs, worker, runs)
    else:
        runs, newly = _those_that_count(turn, jobs, worker, keys, told)
    ready = _gains(turn, jobs, worker, runs)
    ready += count_ready(jobs, newly)
    if runs:
        jobs.save()
    return Completed(answers(finishes, runs, partial(standing, turn), "done"), tuple(ready))


def _all_of_them(turn: Transaction, jobs: JobRows, worker: str, runs: Sequence[Run]) -> list[Row]:
    """All are done, as nearly always; the tasks (key, id, parked) that became ready."""
    _keep_results(turn, runs, "results_add")
    questions = _questions(worker, runs)  # before: whoever freezes between here and the sync holds the jobs
    held = jobs.ask({run.first >> PLACES for run in runs})
    asked = _finish(turn, questions)
    jobs.take(held)
    lost, newly = _lost(turn, asked)
    if lost or jobs.needed():
        raise TooBold
    return newly


def _those_that_count(
    turn: Transaction, jobs: JobRows, worker: str, keys: Sequence[int], told: Sequence[Finish]
) -> tuple[list[Run], list[Row]]:
    """Look which leases count, and only they are done; the same of them."""
    jobs.load({key >> PLACES for key in keys})
    if jobs.needed():
        jobs.load(turn.column("needing_jobs", keys=numbers(keys)))
    turn.run("part", ids=[finish.task for finish in told])
    lost, newly = _lost(turn, _finish(turn, _questions(worker, finished_runs(keys, told))))
    won = [(key, finish) for key, finish in zip(keys, told, strict=True) if (key, finish.fence) not in lost]
    runs = finished_runs([key for key, _ in won], [finish for _, finish in won])
    _keep_results(turn, runs, "results_keep")
    return runs, newly


def _by_lease(
    turn: Transaction, finishes: Sequence[Finish], known: Mapping[str, int]
) -> tuple[Sequence[int], Sequence[Finish]]:
    """The key of each task with its finish; of two finishes of one lease the first counts."""
    keys = list(map(known.get, map(itemgetter(0), finishes)))
    if None in keys:
        strangers = [finish.task for finish, key in zip(finishes, keys, strict=True) if key is None]
        found = {**known, **dict(turn.all("keys", ids=strangers))}
        keys = [found.get(finish.task) for finish in finishes]
    if None not in keys and len(set(keys)) == len(keys):
        return cast(list[int], keys), finishes
    first: dict[Lease, Finish] = {}
    for key, finish in zip(keys, finishes, strict=True):
        if key is not None:
            first.setdefault((key, finish.fence), finish)
    return [key for key, _ in first], list(first.values())


def _questions(worker: str, runs: Sequence[Run]) -> list[Question]:
    """One look for all that share a fence."""
    alike: dict[tuple[int, bool], list[Run]] = defaultdict(list)
    for run in sorted(runs):
        alike[run.fence, run.adopted].append(run)
    return [
        (part, {"worker": worker, "fence": fence, "adopted": adopted, "all": how_many(part),
            "firsts": numbers(run.first for run in part), "lasts": numbers(run.last for run in part)})
        for (fence, adopted), part in alike.items()
    ]  # fmt: skip


def _finish(turn: Transaction, questions: Iterable[Question]) -> list[Asked]:
    """They are done, if their leases count; nobody waits for the answer."""
    return [Asked(runs, turn.run("finish", at=turn.given, **values)) for runs, values in questions]


def _results(runs: Iterable[Run]) -> Iterable[Result]:
    return chain.from_iterable(chain.from_iterable(run.results for run in runs))


def _lost(turn: Transaction, asked: Sequence[Asked]) -> tuple[set[Lease], list[Row]]:
    """Which leases did not count, and the tasks (key, id, parked) that became ready."""
    lost: set[Lease] = set()
    ready: list[Row] = []
    for runs, cursor in asked:
        ((done, kept, newly),) = turn.rows(cursor)
        if done < how_many(runs):
            won = set(chain.from_iterable(range(first, last + 1) for first, last in kept or ()))
            told = chain.from_iterable(range(run.first, run.last + 1) for run in runs)
            lost.update((key, runs[0].fence) for key in told if key not in won)
        ready += newly or []
    return lost, ready


def _gains(turn: Transaction, jobs: JobRows, worker: str, runs: Iterable[Run]) -> list[str]:
    groups = by_job(runs).values()
    return [id for group in groups for id in _gain(turn, jobs, jobs.of(group[0].first), worker, group)]


def _gain(turn: Transaction, jobs: JobRows, job: OpenJob, worker: str, group: Sequence[Run]) -> tuple[str, ...]:
    """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
    many = how_many(group)
    job.done, job.live = job.done + many, job.live - many
    tell_runs(job, turn.wall, worker, group)
    owed = [result.key for result in _results(group) if result.publishes]
    if owed:
        turn.run("debts_add", rows=encode([{"owner": job.owner, "job": job.id, "key": key} for key in owed]))
    if job.opened:
        return ()
    return open_plan(turn, jobs, job, group[0].fence)  # before a plan is open there is only its first task


def _keep_results(turn: Transaction, runs: Sequence[Run], how: str) -> None:
    """Each for the owner of its job, which the database knows by the job's place among these."""
    made = list(_results(runs))
    if not made:
        return
    jobs = sorted({run.first >> PLACES for run in runs})
    places = {job: place for place, job in enumerate(jobs, 1)}
    owners = chain.from_iterable([places[run.first >> PLACES]] * sum(map(len, run.results)) for run in runs)
    columns = dict(zip(Result._fields, zip(*made, strict=True), strict=True))
    named = {name: texts(columns.pop(name)) for name in ("key", "output", "manifest_sha256")}
    counts = {name: numbers(values) for name, values in columns.items()}
    turn.run(how, jobs=numbers(jobs), owners=numbers(owners), **named, **counts)
