"""The states of jobs on a terminal: their colours, and the words that `--state` understands."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from rushes.domain.job import Job, JobState
from rushes.domain.worker import Worker
from rushes.library.jobs import Page
from rushes.surfaces.cli.screen import DONE, NOW, TROUBLE, Part
from rushes.surfaces.words import JOB_WORDS, UNFINISHED, ActiveJobs, plural, video_word

STYLES = {"running": NOW, "paused": NOW, "failed": TROUBLE, "done": DONE, "cancelled": DONE}

# docs/states.md maps the words of other designs; whoever comes from there may use them.
ALIASES = {
    "queued": "waiting",
    "pending": "waiting",
    "processing": "running",
    "canceled": "cancelled",
    "dead": "failed",
    "probing": JobState.CHUNKING,
    "open": JobState.RUNNING,
    JobState.COMPLETED: "done",
}
STATES: Mapping[str, tuple[JobState, ...]] = {
    "waiting": UNFINISHED,
    "running": (),  # known by who works, not by a state
    "paused": UNFINISHED,
    "done": (JobState.COMPLETED,),
    "failed": (JobState.FAILED,),
    "cancelled": (JobState.CANCELLED,),
    **{state: (state,) for state in UNFINISHED},
}


def next_step(workers: Iterable[Worker]) -> str:
    """What becomes of work that was just made ready."""
    alive = sum(worker.alive for worker in workers)
    if not alive:
        return "next: rushes worker --until-idle"
    return f"{plural(alive, 'worker is', 'workers are')} running; follow with: rushes jobs ls"


def state_part(word: str) -> Part:
    """A state's word with its style."""
    return word, STYLES.get(word, "")


def video_parts(words: Iterable[str]) -> list[Part]:
    """The states of several jobs of one video: the most telling one, and how many failed besides."""
    first, failed = video_word(words)
    return [state_part(first), *([(f", {failed} failed", TROUBLE)] if failed else [])]


class StateWord(click.ParamType[str]):
    """A state, in people's words, the ledger's or another design's."""

    name = "state"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """One of the keys of STATES."""
        word = str(value).lower()
        word = ALIASES.get(word, word)
        if word not in STATES:
            self.fail(f"unknown state {value!r}. Choose from: {', '.join(JOB_WORDS)}.", param, ctx)
        return word


def page_of(fetch: Callable[[JobState, str], Page[Job]], word: str, active: ActiveJobs, cursor: str) -> Page[Job]:
    """Jobs in one state as people see it, one ledger state after the other; goes on until a row is found."""
    states = STATES[word]
    name, _, inner = cursor.partition(":")
    at = states.index(JobState(name)) if name in states else 0
    while at < len(states):
        page = fetch(states[at], inner)
        rows = tuple(j for j in page.rows if word not in JOB_WORDS or active.word(j) == word)
        at, inner = (at, page.cursor) if page.cursor else (at + 1, "")
        if rows:
            return Page(rows, f"{states[at]}:{inner}" if at < len(states) else "")
    return Page(())
