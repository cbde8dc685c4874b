"""The states of jobs in people's words and colours: `running` means that a living worker has a task of it in hand."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.keys import parse_task_id
from rushes.domain.worker import Worker
from rushes.ledger.port import Page
from rushes.surfaces.cli.screen import DONE, NOW, TROUBLE, Part
from rushes.surfaces.cli.text import many

STYLES = {"running": NOW, "probing": NOW, "paused": NOW, "failed": TROUBLE, "done": DONE, "cancelled": DONE}
_FINAL = {JobState.COMPLETED: "done", JobState.FAILED: "failed", JobState.CANCELLED: "cancelled"}
_OPEN = (JobState.RUNNING, JobState.CHUNKING, JobState.CREATED)
_TELLING = ("running", "probing", "waiting", "paused", "done", "failed", "cancelled")

# docs/states.md maps the words of other designs; whoever comes from there may use them.
ALIASES = {
    "queued": "waiting",
    "pending": "waiting",
    "processing": "running",
    "canceled": "cancelled",
    "dead": "failed",
    JobState.CREATED: "created",
    JobState.CHUNKING: "probing",
    JobState.RUNNING: "open",
    JobState.COMPLETED: "done",
}
WORDS: Mapping[str, tuple[JobState, ...]] = {
    "waiting": _OPEN,
    "running": (),  # known by who works, not by a state
    "paused": _OPEN,
    "done": (JobState.COMPLETED,),
    "failed": (JobState.FAILED,),
    "cancelled": (JobState.CANCELLED,),
    "created": (JobState.CREATED,),
    "probing": (JobState.CHUNKING,),
    "open": (JobState.RUNNING,),
}
SHOWN = ("waiting", "running", "paused", "done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Hands:
    """The jobs that living workers have in hand."""

    jobs: frozenset[str] = frozenset()

    def word(self, job: Job) -> str:
        """A job's state in one word."""
        return self.of(job.id, job.state, paused=job.paused)

    def of(self, job: str, state: str, *, paused: bool = False) -> str:
        """The same from what the index knows."""
        if state in FINAL:
            return _FINAL[JobState(state)]
        if paused:
            return "paused"
        if job not in self.jobs:
            return "waiting"
        return "probing" if state == JobState.CHUNKING else "running"


def hands(workers: Iterable[Worker]) -> Hands:
    """Who is at work on what, now."""
    return Hands(frozenset(parse_task_id(task)[0] for w in workers if w.alive for task in w.held))


def who_does_it(workers: Iterable[Worker]) -> str:
    """What becomes of work that was just made ready."""
    alive = sum(worker.alive for worker in workers)
    if not alive:
        return "next: rushes worker --until-idle"
    return f"{many(alive, 'worker is', 'workers are')} at it; look with: rushes jobs ls"


def part(word: str) -> Part:
    """A state's word with its style."""
    return word, STYLES.get(word, "")


def parts(words: Iterable[str]) -> list[Part]:
    """The states of several jobs of one film: the most telling one, and how many failed besides."""
    counted = Counter(words)
    first = min(counted, key=_TELLING.index)
    failed = counted["failed"] if first != "failed" else 0
    return [part(first), *([(f", {failed} failed", TROUBLE)] if failed else [])]


class StateWord(click.ParamType[str]):
    """A state, in people's words, the ledger's or another design's."""

    name = "state"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """People's word for it."""
        word = str(value).lower()
        word = ALIASES.get(word, word)
        if word not in WORDS:
            self.fail(f"{value!r} is no state; there are {', '.join(SHOWN)}.", param, ctx)
        return word


def page_of(fetch: Callable[[JobState, str], Page[Job]], word: str, now: Hands, cursor: str) -> Page[Job]:
    """Jobs in one state as people see it, one ledger state after the other; goes on until a row is found."""
    states = WORDS[word]
    name, _, inner = cursor.partition(":")
    at = states.index(JobState(name)) if name in states else 0
    while at < len(states):
        page = fetch(states[at], inner)
        rows = tuple(j for j in page.rows if word not in SHOWN or now.word(j) == word)
        at, inner = (at, page.cursor) if page.cursor else (at + 1, "")
        if rows:
            return Page(rows, f"{states[at]}:{inner}" if at < len(states) else "")
    return Page(())
