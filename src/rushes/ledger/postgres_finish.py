"""Completion on PostgreSQL: done, results, count-down, events, counters and debts in one transaction."""

from collections.abc import Iterable, Mapping, Sequence

from rushes.domain.event import EventType
from rushes.domain.result import Result
from rushes.domain.task import Finish, Said
from rushes.ledger.open_job import PLACES, OpenJob, encode
from rushes.ledger.port import Completed
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.postgres_take import count_ready, open_plan
from rushes.ledger.postgres_work import Standing, standing
from rushes.postgres.store import Row, Turn

Told = dict[tuple[int, int], Finish]  # by the key of each task and its fence


def complete(turn: Turn, worker: str, finishes: Sequence[Finish], known: Mapping[str, int], *, new: bool) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not.

    `known` has the keys of tasks that were claimed here: a task's key never changes. `new` hopes that no result is
    there yet.
    """
    told = _by_lease(turn, finishes, known)
    jobs = JobRows(turn)
    jobs.load({key >> PLACES for key, _ in told})
    won, newly = _win(turn, jobs, worker, told)
    ready: list[str] = []
    results: dict[str, list[Result]] = {}
    for number, group in _by_job(won).items():
        job = jobs.of(number << PLACES)
        ready += _gain(turn, jobs, job, worker, group)
        results.setdefault(job.owner, []).extend(r for f in group for r in f.results)
    for owner, rows in results.items():
        _keep_results(turn, owner, rows, "results_add" if new else "results_keep")
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
    """Which are done now, and the tasks (key, id, parked) that became ready; one look for all that share a fence."""
    if jobs.needed():
        jobs.load(turn.column("needing_jobs", keys=_array(key for key, _ in told)))
    groups: dict[tuple[int, bool], list[int]] = {}
    for (key, fence), finish in told.items():
        groups.setdefault((fence, finish.adopted), []).append(key)
    lost: set[tuple[int, int]] = set()
    ready: list[Row] = []
    for (fence, adopted), keys in groups.items():
        these = {"keys": _array(keys), "fence": fence, "adopted": adopted, "all": len(keys)}
        ((done, kept, newly),) = turn.all("finish", worker=worker, at=turn.wall, **these)
        lost.update((key, fence) for key in set(keys).difference(kept or ()) if done < len(keys))
        ready += newly or []
    return {lease: finish for lease, finish in told.items() if lease not in lost} if lost else told, ready


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


def _keep_results(turn: Turn, owner: str, results: Sequence[Result], how: str) -> None:
    if results:
        columns = dict(zip(Result._fields, zip(*results, strict=True), strict=True))
        texts = {name: _texts(columns.pop(name)) for name in ("key", "output", "manifest_sha256")}
        turn.run(how, owner=owner, **texts, **{name: _array(values) for name, values in columns.items()})


def _array(values: Iterable[object]) -> str:
    """Numbers as PostgreSQL reads an array: one text is ten times as quick to send as a list."""
    return "{" + ",".join(map(str, values)) + "}"


def _texts(values: Sequence[str]) -> str:
    text = '","'.join(values)
    if "\\" in text or text.count('"') != 2 * len(values) - 2:
        text = '","'.join(value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return '{"' + text + '"}'


def _said(turn: Turn, finishes: Sequence[Finish], won: Told) -> tuple[Said, ...]:
    if len(won) == len(finishes):
        return (Said.OK,) * len(finishes)
    rows, ours = standing(turn, (f.task for f in finishes)), {(f.task, f.fence) for f in won.values()}
    return tuple(_answer(f, ours, rows) for f in finishes)


def _answer(finish: Finish, ours: set[tuple[str, int]], rows: Mapping[str, Standing]) -> Said:
    if (finish.task, finish.fence) in ours:
        return Said.OK
    return rows[finish.task].said(finish.fence, "done") if finish.task in rows else Said.LOST
