"""Tasks that stand together in a plan, taken as one: keys as ranges, finishes by columns, events of many in one row.

A plan's tasks are mostly neighbours, and one write or one look for a run of them takes the place of one for each.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, count, pairwise, repeat
from operator import ne, sub
from typing import NamedTuple

from rushes.domain.event import Event, EventType
from rushes.domain.keys import JSON, parse_task_id
from rushes.domain.result import Result
from rushes.domain.task import Finish, Verdict
from rushes.ledger.clock import iso
from rushes.ledger.open_job import FIRST, PLACES, OpenJob
from rushes.ledger.standing import TaskStatus

EventSeen = tuple[int, str, int, str | None, JSON]  # seq, type, at, task, body
Name = Callable[[int, int], Iterable[str]]  # the ids of that many tasks from a place in the plan on
Look = Callable[[Iterable[str]], Mapping[str, TaskStatus]]  # where tasks stand


class Run(NamedTuple):
    """Finishes of neighbouring tasks with one fence: written as one, and their values kept in columns."""

    first: int
    last: int
    fence: int
    adopted: bool
    results: Sequence[tuple[Result, ...]]
    seconds: Sequence[float]


def splits(keys: Sequence[int]) -> list[int]:
    """Where keys, in the order given, begin, cease to be neighbours, and end; those of two jobs never are."""
    cuts = compress(count(1), map(ne, map(sub, keys[1:], keys), repeat(1)))
    return [0, *cuts, len(keys)] if keys else []


def runs(keys: Sequence[int]) -> list[tuple[int, int]]:
    """Keys as ranges, first and last."""
    return [(keys[begin], keys[end - 1]) for begin, end in pairwise(splits(keys))]


def finished_runs(keys: Sequence[int], finishes: Sequence[Finish]) -> list[Run]:
    """Finishes of the tasks with these keys; column by column: half the time of looking at each."""
    if not keys:
        return []
    _, fences, results, adopted, seconds = zip(*finishes, strict=True)
    cuts = splits(keys)
    if len(set(fences)) > 1 or len(set(adopted)) > 1:
        kinds = pairwise(zip(fences, adopted, strict=True))
        cuts = sorted({*cuts, *(n for n, (a, b) in enumerate(kinds, 1) if a != b)})
    return [
        Run(keys[begin], keys[end - 1], fences[begin], adopted[begin], results[begin:end], seconds[begin:end])
        for begin, end in pairwise(cuts)
    ]


def how_many(runs: Iterable[Run]) -> int:
    """Their tasks."""
    return sum(len(run.seconds) for run in runs)


def by_job(runs: Iterable[Run]) -> dict[int, list[Run]]:
    """Those of each job, by its number."""
    groups: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.first >> PLACES].append(run)
    return groups


def answers(finishes: Sequence[Finish], won: Sequence[Run], standing: Look, *done: str) -> tuple[Verdict, ...]:
    """An answer for each finish; where the tasks stand is looked up only if some lease did not count.

    `done` are the outcomes by which a store knows what is done: said again at the same fence, it is OK again.
    """
    if how_many(won) == len(finishes):
        return (Verdict.OK,) * len(finishes)
    rows = standing(finish.task for finish in finishes)
    ours = {(key, run.fence) for run in won for key in range(run.first, run.last + 1)}
    return tuple(_answer(finish, ours, rows.get(finish.task), done) for finish in finishes)


def _answer(finish: Finish, ours: set[tuple[int, int]], row: TaskStatus | None, done: Sequence[str]) -> Verdict:
    if row is None:
        return Verdict.LOST
    return Verdict.OK if (row.key, finish.fence) in ours else row.verdict(finish.fence, *done)


def adopted_runs(keys: Sequence[int]) -> list[Run]:
    """Tasks that were done when their plan was opened."""
    return [Run(first, last, 0, True, (), (0.0,) * (last - first + 1)) for first, last in runs(keys)]  # noqa: FBT003


def tell_runs(job: OpenJob, at: int, worker: str | None, finished: Sequence[Run]) -> None:
    """Tell of tasks that are done: one row for those that were worked on, one for those that were adopted."""
    for type, adopted in ((EventType.DONE, False), (EventType.ADOPTED, True)):
        told = [run for run in finished if run.adopted is adopted]
        if told:
            ranges = [(run.first & FIRST, len(run.seconds), run.fence) for run in told]
            seconds = [second for run in told for second in run.seconds]
            job.tell(type, at, {"worker": worker, "runs": ranges, "seconds": seconds}, n=len(seconds))


def one_by_one(job: str, row: EventSeen, name: Name) -> Iterator[Event]:
    """The events of a row; `name` tells the tasks of a run."""
    seq, kind, at, task, body = row
    type, stamp = EventType(kind), iso(at)
    if "runs" not in body:
        yield Event(job, seq, type, stamp, task, body)
        return
    tasks = ((id, fence) for place, many, fence in body["runs"] for id in name(place, many))
    for number, ((id, fence), seconds) in enumerate(zip(tasks, body["seconds"], strict=True), seq):
        _, stage, chunk = parse_task_id(id)
        data: JSON = {"stage": stage, "chunk": chunk, "fence": fence, "worker": body["worker"], "seconds": seconds}
        yield Event(job, number, type, stamp, id, data)
