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
from rushes.postgres.store import Row, Turn


class Told(NamedTuple):
    """Finishes of leases by columns: half the time of looking at each."""

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


NOTHING = Told((), (), (), (), (), ())


def complete(turn: Turn, worker: str, finishes: Sequence[Finish], known: Mapping[str, int], *, new: bool) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not.

    `known` has the keys of tasks that were claimed here: a task's key never changes. `new` hopes that no result is
    there yet.
    """
    told = _by_lease(turn, finishes, known)
    jobs = JobRows(turn)
    jobs.load({key >> PLACES for key in told.keys})
    won, newly = _win(turn, jobs, worker, told)
    ready: list[str] = []
    results: dict[str, list[Result]] = {}
    for part in _by_job(won):
        job = jobs.of(part.keys[0])
        ready += _gain(turn, jobs, job, worker, part)
        results.setdefault(job.owner, []).extend(chain.from_iterable(part.results))
    for owner, rows in results.items():
        _keep_results(turn, owner, rows, "results_add" if new else "results_keep")
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
    told = Told._make((keys, *columns))
    if None not in keys and len(set(keys)) == len(keys):
        return told
    leases = list(zip(keys, fences, strict=True))
    first = {lease: n for n, lease in reversed([*enumerate(leases)])}
    return told.only([lease[0] is not None and first[lease] == n for n, lease in enumerate(leases)])


def _win(turn: Turn, jobs: JobRows, worker: str, told: Told) -> tuple[Told, list[Row]]:
    """Which are done now, and the tasks (key, id, parked) that became ready; one look for all that share a fence."""
    if not told.keys:
        return told, []
    if jobs.needed():
        jobs.load(turn.column("needing_jobs", keys=_array(told.keys)))
    lost: set[tuple[int, int]] = set()
    ready: list[Row] = []
    for (fence, adopted), keys in _by_fence(told).items():
        these = {"keys": _array(keys), "fence": fence, "adopted": adopted, "all": len(keys)}
        ((done, kept, newly),) = turn.all("finish", worker=worker, at=turn.wall, **these)
        lost.update((key, fence) for key in set(keys).difference(kept or ()) if done < len(keys))
        ready += newly or []
    if not lost:
        return told, ready
    return told.only([lease not in lost for lease in zip(told.keys, told.fences, strict=True)]), ready


def _by_fence(told: Told) -> Mapping[tuple[int, bool], Sequence[int]]:
    if len(set(told.fences)) == len(set(told.adopted)) == 1:
        return {(told.fences[0], told.adopted[0]): told.keys}
    groups: dict[tuple[int, bool], list[int]] = {}
    for key, fence, adopted in zip(told.keys, told.fences, told.adopted, strict=True):
        groups.setdefault((fence, adopted), []).append(key)
    return groups


def _by_job(won: Told) -> list[Told]:
    """Those of one job that stand together, and of one kind."""
    kinds = list(zip((key >> PLACES for key in won.keys), won.adopted, strict=True))
    cuts = [0, *compress(count(1), map(ne, kinds[1:], kinds)), len(kinds)] if kinds else []
    return [won.cut(begin, end) for begin, end in pairwise(cuts)]


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
    if len(won.keys) == len(finishes):
        return (Said.OK,) * len(finishes)
    rows, ours = standing(turn, (f.task for f in finishes)), set(zip(won.tasks, won.fences, strict=True))
    return tuple(_answer(f, ours, rows) for f in finishes)


def _answer(finish: Finish, ours: set[tuple[str, int]], rows: Mapping[str, Standing]) -> Said:
    if (finish.task, finish.fence) in ours:
        return Said.OK
    return rows[finish.task].said(finish.fence, "done") if finish.task in rows else Said.LOST
