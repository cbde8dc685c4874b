"""A worker's bench, watched: a line per slot on a terminal, a line per outcome in a pipe, JSON lines for programs."""

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rich.cells import set_cell_size
from rich.console import Group
from rich.live import Live
from rich.text import Text

from rushes.domain.errors import RushesError
from rushes.domain.task import Lease
from rushes.surfaces.cli.screen import DONE, NOW, TROUBLE, Part
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import brief, lasted, many
from rushes.surfaces.cli.views.disk_space import News, fields, words
from rushes.surfaces.cli.views.progress import stopping
from rushes.worker.commands import Complete, Fail, GiveBack, OutboxEntry
from rushes.worker.core import Holding, State
from rushes.worker.inputs import DiskSpace, Input, OutboxEntryWritten

REFRESH = 4  # a second
WAITING = 10_000  # outcomes that nobody has read yet; a reader that sleeps must not fill the memory
PATIENCE_SECONDS = 5.0  # with a reader at the end
NAME_CELLS = 32


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended."""

    lease: Lease
    word: str  # done, found, failed, dead, given back
    seconds: float | None = None
    why: str = ""


def outcome_of(letter: OutboxEntry) -> Outcome:
    """What a letter to the ledger says, in people's words."""
    match letter:
        case Complete(lease, finish):
            return Outcome(lease, "found" if finish.adopted else "done", None if finish.adopted else finish.seconds)
        case Fail(lease, failure, delay):
            then = "not tried again" if delay is None else f"tried again in {lasted(delay)}"
            return Outcome(
                lease, "dead" if delay is None else "failed", None, f"{failure.kind}: {failure.message}; {then}"
            )
        case GiveBack(lease, reason):
            return Outcome(lease, "given back", None, reason)


class Bench:
    """Looks over a worker's shoulder; nothing it does can hold the worker up."""

    def __init__(self, session: Session, name_of: Callable[[str], str], state: Callable[[], State]) -> None:
        self._session, self._name_of, self._state = session, name_of, state
        self._names: dict[str, str] = {}
        self._box: queue.Queue[OutboxEntry | DiskSpace | None] = queue.Queue(WAITING)
        self._room = News()
        self._begun, self._told = time.monotonic(), 0
        self.count = Counter[str]()
        self._teller = threading.Thread(target=self._tell_all, daemon=True)
        self._live = Live(
            console=session.err.console, get_renderable=self.picture, refresh_per_second=REFRESH, transient=True
        )

    def seen(self, happening: Input) -> None:
        """Called in the worker's loop: counts, and leaves the telling to another thread."""
        if isinstance(happening, DiskSpace):
            self._room.hear(happening)
            if (new := self._room.tell()) and not self._box.full():
                self._box.put(new)
        if isinstance(happening, OutboxEntryWritten):
            self.count[outcome_of(happening.letter).word] += 1
            if not self._box.full():
                self._box.put(happening.letter)

    def told(self, _signal: int) -> None:
        """A signal asked to stop."""
        self._told += 1

    def start(self) -> None:
        """Begin to look."""
        self._teller.start()
        if self._session.bars:
            self._live.start()

    def close(self) -> None:
        """Tell what is left to tell."""
        with suppress(queue.Full):  # a reader that sleeps is not waited for
            self._box.put(None, timeout=PATIENCE_SECONDS)
            self._teller.join(PATIENCE_SECONDS)
        self._live.stop()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._begun

    @property
    def counts(self) -> str:
        """12 done, 1 failed."""
        return ", ".join(f"{n} {word}" for word, n in self.count.items()) or "nothing done"

    def picture(self) -> Group:
        """The slots of this moment."""
        state = self._state()
        held = {h.slot: h for h in list(state.held.values()) if not h.settled}
        slots = sorted({*range(state.limits.slots), *held})
        foot: Part = (stopping(self._told), NOW) if self._told else ("Ctrl-C stops after the running chunks", DONE)
        counted = (f"{self.counts} in {lasted(self.seconds)}   ", DONE)
        return Group(*(self._slot(n, held.get(n)) for n in slots), self._cut(counted, foot))

    def _slot(self, number: int, holding: Holding | None) -> Text:
        if holding is None:
            return self._cut(f"{number + 1:>2}  ", ("idle", DONE))
        lease, name = holding.lease, brief(self._name(holding.lease.job), NAME_CELLS)
        chunk = "" if lease.chunk is None else f"chunk {lease.chunk}"
        percent = f"{holding.progress:.0%}" if holding.progress else ""
        took = lasted(max(0.0, time.monotonic() - holding.since))
        return self._cut(
            f"{number + 1:>2}  ", (f"{lease.stage:<11}", NOW), f" {set_cell_size(name, NAME_CELLS)}",
            f" {chunk:<9} {percent:>4} {took:>11}",
        )  # fmt: skip

    def _cut(self, *parts: Part) -> Text:
        text = self._session.err.styled(*parts)
        text.truncate(self._session.err.width, overflow="crop")
        return text

    def _tell_all(self) -> None:
        while (letter := self._box.get()) is not None:
            if isinstance(letter, DiskSpace):
                self._tell_room(letter)
            else:
                self._tell(outcome_of(letter))

    def _tell_room(self, room: DiskSpace) -> None:
        if self._session.json:
            self._session.message("status", **fields(room))
        else:
            self._session.remark((words(room), NOW))

    def _tell(self, outcome: Outcome) -> None:
        lease, bad = outcome.lease, outcome.word in ("failed", "dead")
        if self._session.json:
            names = ("task", "job", "stage", "chunk")
            about = {n: getattr(lease, n) for n in names} | {"name": self._name(lease.job), "attempt": lease.fence}
            self._session.message("task", outcome=outcome.word, seconds=outcome.seconds, why=outcome.why, **about)
        elif bad or not self._session.bars:
            where = lease.stage if lease.chunk is None else f"{lease.stage} chunk {lease.chunk}"
            end = outcome.why or (lasted(outcome.seconds) if outcome.seconds is not None else "")
            self._session.remark(
                (f"{outcome.word:<10}", TROUBLE if bad else ""), f"  {self._name(lease.job)}  {where}  ", (end, DONE)
            )

    def _name(self, job: str) -> str:
        if job not in self._names:
            try:
                self._names[job] = self._name_of(job)
            except RushesError:  # a busy store: the id will do for now
                return job
        return self._names[job]


def told_tasks(bench: Bench) -> str:
    """12 tasks done, 1 failed, in 3 min 2 s."""
    done = bench.count["done"] + bench.count["found"]
    rest = ", ".join(f"{n} {word}" for word, n in bench.count.items() if word not in ("done", "found"))
    return f"{many(done, 'task')} done{f', {rest}' if rest else ''} in {lasted(bench.seconds)}"
