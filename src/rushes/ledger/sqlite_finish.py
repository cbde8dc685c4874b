"""Completion on SQLite: done, results, count-down, events, counters and debts in one transaction."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rushes.domain.event import EventType
from rushes.domain.result import Result
from rushes.domain.task import Finish, Said
from rushes.ledger.port import Completed
from rushes.ledger.sqlite_jobs import FIRST, PLACES, JobRows, OpenJob
from rushes.ledger.sqlite_store import Row, Turn, encode, mark
from rushes.ledger.sqlite_take import count_down, open_plan
from rushes.ledger.sqlite_work import DONE, Standing, standing

Won = list[tuple[int, Finish]]  # the key of each task whose lease counted, and its finish


def complete(turn: Turn, worker: str, finishes: Sequence[Finish], known: dict[str, int]) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not.

    `known` has the keys of tasks that were claimed here: a task's key never changes.
    """
    won = _win(turn, worker, finishes, known)
    if not won:
        return Completed(_said(turn, finishes, won))
    jobs, groups = JobRows(turn), _by_job(won)
    jobs.load(groups)
    ready: list[str] = []
    for number, group in groups.items():
        ready += _count(turn, jobs.of(number << PLACES), worker, group)
    _keep_results(turn, jobs, groups)
    ready += _meet(turn, jobs, encode([key for key, _ in won]))
    jobs.save()
    return Completed(_said(turn, finishes, won), tuple(ready))


def _win(turn: Turn, worker: str, finishes: Sequence[Finish], known: dict[str, int]) -> Won:
    """One look and one write for all that share a fence: nearly always all."""
    number = turn.column("worker_row", worker)
    groups: dict[tuple[int, bool], dict[int, Finish]] = defaultdict(dict)
    for finish, key in zip(finishes, _keys(turn, finishes, known), strict=True):
        if key is not None:
            groups[finish.fence, finish.adopted].setdefault(key, finish)
    won: Won = []
    for (fence, adopted), tasks in groups.items() if number else ():
        won += _finish(turn, tasks, fence, adopted, number[0])
    return won


def _finish(turn: Turn, tasks: dict[int, Finish], fence: int, adopted: bool, worker: int) -> Won:
    """These are done, if all leases count; else look which do, and only they are."""
    outcome = DONE[adopted]
    turn.run("mark")
    if turn.run("finish", outcome, turn.wall, encode(list(tasks)), fence, worker).rowcount == len(tasks):
        return list(tasks.items())
    turn.run("back")
    held = set(turn.column("holds", encode(list(tasks)), fence, worker))
    turn.run("finish", outcome, turn.wall, encode(list(held)), fence, worker)
    return [(key, finish) for key, finish in tasks.items() if key in held]


def _keys(turn: Turn, finishes: Sequence[Finish], known: dict[str, int]) -> list[int | None]:
    keys = [known.pop(finish.task, None) for finish in finishes]
    if None not in keys:
        return keys
    found: dict[str, int] = dict(
        turn.all("keys", encode([f.task for f, key in zip(finishes, keys, strict=True) if key is None]))
    )
    return [found.get(f.task) if key is None else key for f, key in zip(finishes, keys, strict=True)]


def _by_job(won: Won) -> dict[int, Won]:
    groups: dict[int, Won] = defaultdict(list)
    for one in won:
        groups[one[0] >> PLACES].append(one)
    return groups


def _count(turn: Turn, job: OpenJob, worker: str, group: Won) -> tuple[str, ...]:
    """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
    job.done, job.live = job.done + len(group), job.live - len(group)
    skip = len(job.id) + 1
    for type, told in _told(group):
        tasks, fences = [f.task[skip:] for f in told], [f.fence for f in told]
        job.tell_each(type, turn.wall, worker, tasks, fences, [f.seconds for f in told])
    first = next((f for key, f in group if not key & FIRST), None)
    if first is None:
        return ()
    job.chunking = 0
    return () if job.opened else open_plan(turn, job, first.fence)


def _told(group: Won) -> Iterator[tuple[EventType, list[Finish]]]:
    done = [f for _, f in group if not f.adopted]
    yield EventType.DONE, done
    if len(done) < len(group):
        yield EventType.ADOPTED, [f for _, f in group if f.adopted]


def _meet(turn: Turn, jobs: JobRows, keys: str) -> tuple[str, ...]:
    down = turn.all("dependants", keys)
    turn.run("meet", keys)
    return count_down(turn, jobs, down)


def _keep_results(turn: Turn, jobs: JobRows, groups: Mapping[int, Won]) -> None:
    """Results that are not there yet, once each: one that is there never changes."""
    rows: dict[tuple[str, str], Row] = {}
    debts: list[Row] = []
    for number, group in groups.items():
        job = jobs.of(number << PLACES)
        results = [r for _, f in group for r in f.results]
        rows |= {(job.owner, r.key): _result(job.owner, r) for r in results}
        debts += [(job.owner, job.id, r.key) for r in results if r.publishes]
    for there in turn.all("results_there", encode([row[0] for row in rows.values()])):
        rows.pop(there, None)
    turn.bulk("result_add", list(rows.values()))
    turn.many("debt_add", debts)


def _result(owner: str, r: Result) -> Row:
    return (mark(r.key), owner, r.key, r.output, r.manifest_sha256, r.size, r.count, r.schema_version, r.publishes)


def _said(turn: Turn, finishes: Sequence[Finish], won: Won) -> tuple[Said, ...]:
    if len(won) == len(finishes):
        return (Said.OK,) * len(finishes)
    rows, ours = standing(turn, (f.task for f in finishes)), {(f.task, f.fence) for _, f in won}
    return tuple(_answer(f, ours, rows) for f in finishes)


def _answer(finish: Finish, ours: set[tuple[str, int]], rows: Mapping[str, Standing]) -> Said:
    if (finish.task, finish.fence) in ours:
        return Said.OK
    return rows[finish.task].said(finish.fence, *DONE) if finish.task in rows else Said.LOST
