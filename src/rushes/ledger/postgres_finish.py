"""Completion on PostgreSQL: done, results, count-down, events, counters and debts in one transaction."""

from collections.abc import Iterable, Mapping, Sequence

from rushes.domain.event import EventType
from rushes.domain.task import Finish, Said
from rushes.ledger.open_job import PLACES, OpenJob, encode
from rushes.ledger.port import Completed
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.postgres_take import count_ready, open_plan
from rushes.ledger.postgres_work import Standing, standing
from rushes.postgres.store import Row, Turn

Told = dict[tuple[int, int], Finish]  # by the key of each task and its fence
_MARK = "\x1f"  # between the texts of one column: a list takes psycopg ten times as long


def complete(turn: Turn, worker: str, finishes: Sequence[Finish], known: Mapping[str, int], *, new: bool) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not.

    `known` has the keys of tasks that were claimed here: a task's key never changes. `new` hopes that no result is
    there yet.
    """
    told = _by_lease(turn, finishes, known)
    jobs = JobRows(turn)
    jobs.load({key >> PLACES for key, _ in told})
    won, newly = _win(turn, jobs, worker, told) if told else ({}, [])
    ready: list[str] = []
    results: list[Row] = []
    for number, group in _by_job(won).items():
        job = jobs.of(number << PLACES)
        ready += _gain(turn, jobs, job, worker, group)
        results += [(job.owner, *r) for f in group for r in f.results]
    _keep_results(turn, results, "results_add" if new else "results_keep")
    ready += count_ready(jobs, newly)
    if won:
        jobs.save()
    return Completed(_said(turn, finishes, won), tuple(ready))


def _by_lease(turn: Turn, finishes: Sequence[Finish], known: Mapping[str, int]) -> Told:
    """Of two finishes of one lease the first counts."""
    strangers = [f.task for f in finishes if f.task not in known]
    keys = {**known, **dict(turn.all("keys", ids=strangers))} if strangers else known
    told: Told = {}
    for finish in finishes:
        if finish.task in keys:
            told.setdefault((keys[finish.task], finish.fence), finish)
    return told


def _win(turn: Turn, jobs: JobRows, worker: str, told: Told) -> tuple[Told, list[Row]]:
    """Which are done now, and the tasks (key, id, parked) that became ready."""
    keys, fences = zip(*told, strict=True)
    these = {"keys": _text(keys), "fences": _text(fences), "adopted": ""}
    if jobs.needed():
        jobs.load(turn.column("needing_jobs", keys=these["keys"]))
    if any(f.adopted for f in told.values()):
        these["adopted"] = _text(f.adopted for f in told.values())
    row = turn.one("finish", worker=worker, at=turn.wall, all=len(told), **these)
    assert row is not None
    if row[0] < len(told):
        kept = set(row[1].split(","))
        told = {lease: f for lease, f in told.items() if f"{lease[0]}.{lease[1]}" in kept}
    return told, row[2] or []


def _by_job(won: Told) -> dict[int, list[Finish]]:
    groups: dict[int, list[Finish]] = {}
    for (key, _), finish in won.items():
        groups.setdefault(key >> PLACES, []).append(finish)
    return groups


def _gain(turn: Turn, jobs: JobRows, job: OpenJob, worker: str, group: list[Finish]) -> tuple[str, ...]:
    """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
    job.done, job.live = job.done + len(group), job.live - len(group)
    adopted = [f for f in group if f.adopted]
    _tell(job, EventType.DONE, turn.wall, worker, [f for f in group if not f.adopted] if adopted else group)
    _tell(job, EventType.ADOPTED, turn.wall, worker, adopted)
    debts = [{"owner": job.owner, "job": job.id, "key": r.key} for f in group for r in f.results if r.publishes]
    if debts:
        turn.run("debts_add", rows=encode(debts))
    if job.opened:
        return ()
    return open_plan(turn, jobs, job, group[0].fence)  # before a plan is open there is only its first task


def _tell(job: OpenJob, type: EventType, at: int, worker: str, told: Sequence[Finish]) -> None:
    skip = len(job.id) + 1
    tasks, fences = [f.task[skip:] for f in told], [f.fence for f in told]
    job.tell_each(type, at, worker, tasks, fences, [f.seconds for f in told])


def _keep_results(turn: Turn, rows: list[Row], how: str) -> None:
    if not rows:
        return
    owner, key, output, sha, size, count, schema, publishes = zip(*rows, strict=True)
    texts = {"owner": _texts(owner), "key": _texts(key), "output": _texts(output), "sha": _texts(sha)}
    numbers = {"size": _text(size), "count": _text(count), "schema": _text(schema), "publishes": _text(publishes)}
    turn.run(how, **texts, **numbers)


def _text(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _texts(values: Sequence[str]) -> str:
    text = _MARK.join(values)
    if text.count(_MARK) >= len(values):
        raise ValueError("a result's texts hold no control characters")
    return text


def _said(turn: Turn, finishes: Sequence[Finish], won: Told) -> tuple[Said, ...]:
    if len(won) == len(finishes):
        return (Said.OK,) * len(finishes)
    rows, ours = standing(turn, (f.task for f in finishes)), {(f.task, f.fence) for f in won.values()}
    return tuple(_answer(f, ours, rows) for f in finishes)


def _answer(finish: Finish, ours: set[tuple[str, int]], rows: Mapping[str, Standing]) -> Said:
    if (finish.task, finish.fence) in ours:
        return Said.OK
    return rows[finish.task].said(finish.fence, "done") if finish.task in rows else Said.LOST
