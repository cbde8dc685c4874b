"""Completion on PostgreSQL: done, results, count-down, events, counters and debts in one transaction."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rushes.domain.event import EventType
from rushes.domain.task import Finish, Said
from rushes.ledger.open_job import PLACES, OpenJob, encode
from rushes.ledger.port import Completed
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.postgres_take import count_ready, open_plan
from rushes.ledger.postgres_work import DONE, Standing, standing
from rushes.postgres.store import Turn

Told = dict[tuple[int, int], Finish]  # by the key of each task and its fence
Won = dict[int, Finish]  # by the key of each task whose lease counted
_MARK = "\x1f"  # between texts of one column: a list of Python takes ten times as long to send


def complete(turn: Turn, worker: str, finishes: Sequence[Finish], known: Mapping[str, int]) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not.

    `known` has the keys of tasks that were claimed here: a task's key never changes.
    """
    told = _by_lease(turn, finishes, known)
    jobs = JobRows(turn)
    jobs.load({key >> PLACES for key, _ in told})
    won, newly = _win(turn, jobs, worker, told) if told else ({}, [])
    ready: list[str] = []
    for group in _by_job(won).values():
        ready += _count(turn, jobs, worker, group)
    _keep_results(turn, jobs, won)
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


def _win(turn: Turn, jobs: JobRows, worker: str, told: Told) -> tuple[Won, list[tuple[int, str, bool]]]:
    """Which are done now, and the tasks (key, id, parked) that became ready."""
    keys, fences = _text(key for key, _ in told), _text(fence for _, fence in told)
    if any(jobs.of(key).needed for key, _ in told):
        jobs.load(turn.column("needing_jobs", keys=keys))
    outcomes = _text(DONE[f.adopted] for f in told.values())
    these = {"keys": keys, "fences": fences, "outcomes": outcomes, "all": len(told)}
    row = turn.one("finish", worker=worker, at=turn.wall, **these)
    assert row is not None
    kept = set(row[1].split(",")) if row[1] is not None else None
    won = {key: f for (key, fence), f in told.items() if kept is None or f"{key}.{fence}" in kept}
    return won, row[2] or []


def _by_job(won: Won) -> dict[int, Won]:
    groups: dict[int, Won] = defaultdict(dict)
    for key, finish in won.items():
        groups[key >> PLACES][key] = finish
    return groups


def _count(turn: Turn, jobs: JobRows, worker: str, group: Won) -> tuple[str, ...]:
    """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
    job = jobs.of(next(iter(group)))
    job.done, job.live = job.done + len(group), job.live - len(group)
    for type, told in _told(group):
        _tell(job, type, turn.wall, worker, told)
    first = group.get(job.span[0])
    return () if first is None or job.opened else open_plan(turn, jobs, job, first.fence)


def _tell(job: OpenJob, type: EventType, at: int, worker: str, told: Sequence[Finish]) -> None:
    skip = len(job.id) + 1
    tasks, fences = [f.task[skip:] for f in told], [f.fence for f in told]
    job.tell_each(type, at, worker, tasks, fences, [f.seconds for f in told])


def _told(group: Won) -> Iterator[tuple[EventType, list[Finish]]]:
    done = [f for f in group.values() if not f.adopted]
    yield EventType.DONE, done
    if len(done) < len(group):
        yield EventType.ADOPTED, [f for f in group.values() if f.adopted]


def _keep_results(turn: Turn, jobs: JobRows, won: Won) -> None:
    """Results that are not there yet, once each: one that is there never changes."""
    owned = [(jobs.of(key), r) for key, f in won.items() for r in f.results]
    if not owned:
        return
    results = [r for _, r in owned]
    turn.run(
        "results_add",
        owner=_texts(job.owner for job, _ in owned),
        key=_texts(r.key for r in results),
        output=_texts(r.output for r in results),
        sha=_texts(r.manifest_sha256 for r in results),
        size=_text(r.size for r in results),
        count=_text(r.count for r in results),
        schema=_text(r.schema_version for r in results),
        publishes=_text(r.publishes for r in results),
    )
    debts = [{"owner": job.owner, "job": job.id, "key": r.key} for job, r in owned if r.publishes]
    if debts:
        turn.run("debts_add", rows=encode(debts))


def _text(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _texts(values: Iterable[str]) -> str:
    each = list(values)
    text = _MARK.join(each)
    if text.count(_MARK) >= len(each):
        raise ValueError("a result's texts hold no control characters")
    return text


def _said(turn: Turn, finishes: Sequence[Finish], won: Won) -> tuple[Said, ...]:
    if len(won) == len(finishes):
        return (Said.OK,) * len(finishes)
    rows, ours = standing(turn, (f.task for f in finishes)), {(f.task, f.fence) for f in won.values()}
    return tuple(_answer(f, ours, rows) for f in finishes)


def _answer(finish: Finish, ours: set[tuple[str, int]], rows: Mapping[str, Standing]) -> Said:
    if (finish.task, finish.fence) in ours:
        return Said.OK
    return rows[finish.task].said(finish.fence, *DONE) if finish.task in rows else Said.LOST
