"""Completion on PostgreSQL: done, results, count-down, events, counters and debts in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress, count, pairwise
from operator import ne
from typing import NamedTuple

from rushes.domain.event import EventType
from rushes.domain.result import Result
from rushes.domain.task import Finish, Said
from rushes.ledger.open_job import PLACES, OpenJob, encode
from rushes.ledger.port import Completed
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.postgres_take import count_ready, open_plan
from rushes.ledger.postgres_work import standing
from rushes.ledger.standing import Standing
from rushes.postgres.columns import numbers, texts
from rushes.postgres.store import Cursor, Row, Turn


class Told(NamedTuple):
    """Finishes of leases by columns: half the time of looking at each."""

    jobs: Sequence[int]  # their numbers
    keys: Sequence[int]
    tasks: Sequence[str]
    fences: Sequence[int]
    results: Sequence[tuple[Result, ...]]
    adopted: Sequence[bool]
    seconds: Sequence[float]

    def cut(self, begin: int, end: int) -> "Told":
        """Some that stand together."""
        return Told._make(column[begin:end] for column in self)

    def only(self, chosen: Sequence[bool]) -> "Told":
        """Some of them."""
        return Told._make(tuple(compress(column, chosen)) for column in self)


class Asked(NamedTuple):
    """Tasks that were said to be done at a fence, and what will answer which are."""

    keys: Sequence[int]
    fence: int
    answer: Cursor


NOTHING = Told((), (), (), (), (), (), ())


class TooBold(Exception):
    """Some lease did not count, but its results are written: the transaction must leave no trace."""


def complete(turn: Turn, worker: str, finishes: Sequence[Finish], known: Mapping[str, int], *, bold: bool) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not.

    `known` has the keys of tasks that were claimed here: a task's key never changes. Who is `bold` hopes that every
    lease counts and no result is there yet, and writes the results before others must wait for the jobs.

    Raises:
        TooBold: not every lease counts.
    """
    told = _by_lease(turn, finishes, known)
    bold = bold and not any(told.adopted)
    if bold:
        _keep_results(turn, told, "results_add")
    jobs = JobRows(turn)
    jobs.load(set(told.jobs))
    asked = _finish(turn, jobs, worker, told)
    ready = _gains(turn, jobs, worker, told) if bold else []  # while the database is at it
    won, newly = _won(turn, told, asked)
    if bold and len(won.keys) < len(told.keys):
        raise TooBold
    if not bold:
        _keep_results(turn, won, "results_keep")
        ready = _gains(turn, jobs, worker, won)
    ready += count_ready(jobs, newly)
    if won.keys:
        jobs.save()
    return Completed(_said(turn, finishes, won), tuple(ready))


def _by_lease(turn: Turn, finishes: Sequence[Finish], known: Mapping[str, int]) -> Told:
    """With the key of each task; of two finishes of one lease the first counts."""
    if not finishes:
        return NOTHING
    columns = tuple(zip(*finishes, strict=True))
    tasks, fences = columns[:2]
    keys = list(map(known.get, tasks))
    if None in keys:
        strangers = [task for task, key in zip(tasks, keys, strict=True) if key is None]
        found = {**known, **dict(turn.all("keys", ids=strangers))}
        keys = [found.get(task) for task in tasks]
    told = Told._make(([(key or 0) >> PLACES for key in keys], keys, *columns))
    if None not in keys and len(set(keys)) == len(keys):
        return told
    leases = list(zip(keys, fences, strict=True))
    first = {lease: n for n, lease in reversed([*enumerate(leases)])}
    return told.only([lease[0] is not None and first[lease] == n for n, lease in enumerate(leases)])


def _finish(turn: Turn, jobs: JobRows, worker: str, told: Told) -> list[Asked]:
    """One look for all that share a fence; nobody waits for it."""
    if told.keys and jobs.needed():
        jobs.load(turn.column("needing_jobs", keys=numbers(told.keys)))
    return [
        Asked(keys, fence, turn.run("finish", worker=worker, at=turn.wall, **_runs(keys), fence=fence, adopted=adopted,
            all=len(keys)))
        for (fence, adopted), keys in _by_fence(told).items()
    ]  # fmt: skip


def _won(turn: Turn, told: Told, asked: Sequence[Asked]) -> tuple[Told, list[Row]]:
    """Which are done now, and the tasks (key, id, parked) that became ready."""
    lost: set[tuple[int, int]] = set()
    ready: list[Row] = []
    for keys, fence, cursor in asked:
        ((done, runs, newly),) = turn.rows(cursor)
        if done < len(keys):
            kept = chain.from_iterable(range(first, last + 1) for first, last in runs or ())
            lost.update((key, fence) for key in set(keys).difference(kept))
        ready += newly or []
    if not lost:
        return told, ready
    return told.only([lease not in lost for lease in zip(told.keys, told.fences, strict=True)]), ready


def _runs(keys: Iterable[int]) -> dict[str, str]:
    """Keys as runs of those that follow each other: a look for each run, instead of one for each key."""
    keys = sorted(keys)
    breaks = [n for n, (before, key) in enumerate(pairwise(keys), 1) if key != before + 1]
    firsts, lasts = [0, *breaks], [*breaks, len(keys)]
    return {"firsts": numbers(keys[n] for n in firsts), "lasts": numbers(keys[n - 1] for n in lasts)}


def _by_fence(told: Told) -> Mapping[tuple[int, bool], Sequence[int]]:
    if len(set(told.fences)) == len(set(told.adopted)) == 1:
        return {(told.fences[0], told.adopted[0]): told.keys}
    groups: dict[tuple[int, bool], list[int]] = {}
    for key, fence, adopted in zip(told.keys, told.fences, told.adopted, strict=True):
        groups.setdefault((fence, adopted), []).append(key)
    return groups


def _by_job(won: Told) -> list[Told]:
    """Those of one job that stand together, and of one kind."""
    kinds = list(zip(won.jobs, won.adopted, strict=True)) if any(won.adopted) else won.jobs
    cuts = [0, *compress(count(1), map(ne, kinds[1:], kinds)), len(kinds)] if kinds else []
    return [won.cut(begin, end) for begin, end in pairwise(cuts)]


def _gains(turn: Turn, jobs: JobRows, worker: str, won: Told) -> list[str]:
    return [id for part in _by_job(won) for id in _gain(turn, jobs, jobs.of(part.keys[0]), worker, part)]


def _gain(turn: Turn, jobs: JobRows, job: OpenJob, worker: str, part: Told) -> tuple[str, ...]:
    """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
    many, skip = len(part.keys), len(job.id) + 1
    job.done, job.live = job.done + many, job.live - many
    type = EventType.ADOPTED if part.adopted[0] else EventType.DONE
    about = {"worker": worker, "fences": part.fences, "seconds": part.seconds, "tasks": [t[skip:] for t in part.tasks]}
    job.tell(type, turn.wall, about, n=many)
    debts = [{"owner": job.owner, "job": job.id, "key": r.key} for rs in part.results for r in rs if r.publishes]
    if debts:
        turn.run("debts_add", rows=encode(debts))
    if job.opened:
        return ()
    return open_plan(turn, jobs, job, part.fences[0])  # before a plan is open there is only its first task


def _keep_results(turn: Turn, told: Told, how: str) -> None:
    """Each for the owner of its job, which the database knows by the job's place among these."""
    if not any(told.results):
        return
    jobs = sorted(set(told.jobs))
    places = {job: place for place, job in enumerate(jobs, 1)}
    owners = [places[job] for job, results in zip(told.jobs, told.results, strict=True) for _ in results]
    columns = dict(zip(Result._fields, zip(*chain.from_iterable(told.results), strict=True), strict=True))
    named = {name: texts(columns.pop(name)) for name in ("key", "output", "manifest_sha256")}
    counts = {name: numbers(values) for name, values in columns.items()}
    turn.run(how, jobs=numbers(jobs), owners=numbers(owners), **named, **counts)


def _said(turn: Turn, finishes: Sequence[Finish], won: Told) -> tuple[Said, ...]:
    if len(won.keys) == len(finishes):
        return (Said.OK,) * len(finishes)
    rows, ours = standing(turn, (f.task for f in finishes)), set(zip(won.tasks, won.fences, strict=True))
    return tuple(_answer(f, ours, rows) for f in finishes)


def _answer(finish: Finish, ours: set[tuple[str, int]], rows: Mapping[str, Standing]) -> Said:
    if (finish.task, finish.fence) in ours:
        return Said.OK
    return rows[finish.task].said(finish.fence, "done") if finish.task in rows else Said.LOST
