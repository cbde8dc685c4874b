"""The chunk map of a job: a row per step, a cell per chunk, in video time; and how long each step took."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from rushes.domain.grouping import grouped
from rushes.domain.job import Job
from rushes.domain.task import Task
from rushes.library.jobs import JobProgress, StageProgress, busy_seconds
from rushes.surfaces.words import TASK_WORDS, task_name, task_word

CELLS = 48  # more than that are drawn as one bar: letters need 12 px
SIGNS = {"adopted": "=", "leased": "L", "ready": "r", "dead": "\u00d7"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One task in the map."""

    task: str
    chunk: int | None
    word: str
    sign: str


@dataclass(frozen=True, slots=True)
class Row:
    """One step: its cells in film time, its counts, its speed and its time."""

    stage: str
    cells: tuple[Cell, ...]
    runs: tuple[tuple[str, int, int], ...]  # word, first cell, how many: for maps too wide for cells
    words: str  # "31 done, 2 in progress, 9 ready"
    progress: StageProgress
    took: float | None

    @property
    def now(self) -> bool:
        """Whether somebody works on it."""
        return self.progress.active > 0


def rows(tasks: Sequence[Task], seen: JobProgress) -> list[Row]:
    """The map of a job, in plan order."""
    known = {s.stage: s for s in seen.stages}
    return [_row(stage, some, known.get(stage)) for stage, some in grouped(tasks, lambda task: task.stage).items()]


def ticks(job: Job, most: int = 5) -> list[int]:
    """Moments of the film in microseconds, evenly apart, its end among them."""
    length = json.loads(job.facts).get("duration_us", 0) if job.facts else 0
    return [length * n // (most - 1) for n in range(most)] if length else []


def _row(stage: str, tasks: list[Task], progress: StageProgress | None) -> Row:
    tasks = sorted(tasks, key=lambda t: -1 if t.chunk is None else t.chunk)
    cells = tuple(_cell(t) for t in tasks)
    done = sum(c.word in ("done", "adopted") for c in cells)
    words, took = [c.word for c in cells], _took(tasks) if done == len(cells) else None
    seen = progress or StageProgress(stage, done, len(cells), 0.0, words.count("leased"), None)
    return Row(stage, cells, tuple(_runs(words)), _words(words), seen, took)


def _cell(task: Task) -> Cell:
    word = task_word(task)
    sign = str(task.failures + 1) if word == "backing off" else SIGNS.get(word, "")
    return Cell(task.id, task.chunk, word, sign)


def _runs(words: Iterable[str]) -> Iterable[tuple[str, int, int]]:
    at = 0
    for word, same in groupby(words):
        count = len(list(same))
        yield word, at, count
        at += count


def _words(words: Iterable[str]) -> str:
    counted = Counter(words)
    return ", ".join(f"{counted[word]} {task_name(word)}" for word in TASK_WORDS if counted[word])


def _took(tasks: Sequence[Task]) -> float | None:
    """Seconds in which a task of it ran."""
    ran = [(t.started_at, t.finished_at) for t in tasks]
    spans = [(_seconds(begin), _seconds(end)) for begin, end in ran if begin and end]
    return busy_seconds(spans) if spans else None


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
