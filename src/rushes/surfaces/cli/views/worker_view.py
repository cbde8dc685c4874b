"""The view of a worker: a line per slot on a terminal, a line per outcome in a pipe, JSON lines for programs."""

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
from rushes.domain.task import Lease, Verdict
from rushes.domain.worker import DiskSpace
from rushes.library.work.progress import EngineOutage
from rushes.surfaces.cli.screen import DONE, NOW, TROUBLE, Part, shorten
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.progress import Outages, report_space, stopping
from rushes.surfaces.words import duration, plural
from rushes.worker.commands import Complete, Fail, GiveBack, OutboxEntry
from rushes.worker.core import Holding, State
from rushes.worker.inputs import Input, OutboxEntryWritten

REFRESH = 4  # a second
WAITING = 10_000  # outcomes that are not printed yet; a reader that sleeps must not fill the memory
PATIENCE_SECONDS = 5.0  # with a reader at the end
NAME_CELLS = 32
STOPS = "Ctrl-C stops after the running chunks"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended."""

    lease: Lease
    word: str  # done, adopted, failed, dead, given back
    seconds: float | None = None
    why: str = ""


def outcome_of(entry: OutboxEntry) -> Outcome:
    """The outcome that an outbox entry stands for."""
    match entry:
        case Complete(lease, finish):
            return Outcome(lease, "adopted" if finish.adopted else "done", None if finish.adopted else finish.seconds)
        case Fail(lease, failure, delay):
            then = "no more attempts" if delay is None else f"next attempt in {duration(delay)}"
            return Outcome(
                lease, "dead" if delay is None else "failed", None, f"{failure.kind}: {failure.message}; {then}"
            )
        case GiveBack(lease, reason):
            return Outcome(lease, "given back", None, reason)


class WorkerView:
    """Shows what a worker does; nothing it does can hold the worker up."""

    def __init__(self, session: Session, name_of: Callable[[str], str], state: Callable[[], State]) -> None:
        self._session, self._name_of, self._state = session, name_of, state
        self._names: dict[str, str] = {}
        self._outages = Outages(session)
        self._box: queue.Queue[OutboxEntry | DiskSpace | EngineOutage | None] = queue.Queue(WAITING)
        self._begun, self._signals = time.monotonic(), 0
        self.count = Counter[str]()
        self._printer = threading.Thread(target=self._print_all, daemon=True)
        self._live = Live(
            console=session.err.console, get_renderable=self.picture, refresh_per_second=REFRESH, transient=True
        )

    def on_input(self, input: Input) -> None:
        """Called in the worker's loop: counts, and leaves the output to another thread."""
        if isinstance(input, DiskSpace) and input.enough != self._state().has_space:  # each lane reports it
            self._put(input)
        if outage := EngineOutage.of(input):
            self._put(outage)
        if isinstance(input, OutboxEntryWritten) and input.verdict is Verdict.OK:
            self.count[outcome_of(input.entry).word] += 1
            self._put(input.entry)

    def _put(self, item: OutboxEntry | DiskSpace | EngineOutage) -> None:
        if not self._box.full():
            self._box.put(item)

    def on_stop(self, _signal: int) -> None:
        """A signal asked to stop."""
        self._signals += 1

    def start(self) -> None:
        """Begin to show."""
        self._printer.start()
        if self._session.bars:
            self._live.start()

    def close(self) -> None:
        """Print what is left to print."""
        with suppress(queue.Full):  # a reader that sleeps is not waited for
            self._box.put(None, timeout=PATIENCE_SECONDS)
            self._printer.join(PATIENCE_SECONDS)
        self._live.stop()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._begun

    @property
    def counts(self) -> str:
        """12 done, 1 failed."""
        return ", ".join(f"{n} {word}" for word, n in self.count.items()) or "no tasks done"

    def picture(self) -> Group:
        """The slots of this moment."""
        state = self._state()
        held = {h.slot: h for h in list(state.held.values()) if not h.settled}
        slots = sorted({*range(state.limits.slots), *held})
        foot: Part = (stopping(self._signals), NOW) if self._signals else (STOPS, DONE)
        counted = (f"{self.counts} in {duration(self.seconds)}   ", DONE)
        return Group(*(self._slot(n, held.get(n)) for n in slots), self._session.err.cropped(counted, foot))

    def _slot(self, number: int, holding: Holding | None) -> Text:
        if holding is None:
            return self._session.err.cropped(f"{number + 1:>2}  ", ("idle", DONE))
        lease, name = holding.lease, shorten(self._name(holding.lease.job), NAME_CELLS)
        chunk = "" if lease.chunk is None else f"chunk {lease.chunk}"
        percent = f"{holding.progress:.0%}" if holding.progress else ""
        took = duration(max(0.0, time.monotonic() - holding.since))
        return self._session.err.cropped(
            f"{number + 1:>2}  ", (f"{lease.stage:<11}", NOW), f" {set_cell_size(name, NAME_CELLS)}",
            f" {chunk:<9} {percent:>4} {took:>11}",
        )  # fmt: skip

    def _print_all(self) -> None:
        while (item := self._box.get()) is not None:
            if isinstance(item, DiskSpace):
                report_space(self._session, item)
            elif isinstance(item, EngineOutage):
                self._outages.report(item)
            else:
                self._print(outcome_of(item))

    def _print(self, outcome: Outcome) -> None:
        lease, bad = outcome.lease, outcome.word in ("failed", "dead")
        if self._session.json:
            names = ("task", "job", "stage", "chunk")
            about = {n: getattr(lease, n) for n in names} | {"name": self._name(lease.job), "attempt": lease.fence}
            self._session.message("task", outcome=outcome.word, seconds=outcome.seconds, why=outcome.why, **about)
        elif bad or not self._session.bars:
            where = lease.stage if lease.chunk is None else f"{lease.stage} chunk {lease.chunk}"
            end = outcome.why or (duration(outcome.seconds) if outcome.seconds is not None else "")
            self._session.remark(
                (f"{outcome.word:<10}", TROUBLE if bad else ""), f"  {self._name(lease.job)}  {where}  ", (end, DONE)
            )

    def _name(self, job: str) -> str:
        if job not in self._names:
            try:
                self._names[job] = self._name_of(job)
            except RushesError:  # the store is busy: show the id for now
                return job
        return self._names[job]


def task_summary(view: WorkerView) -> str:
    """12 tasks done, 1 failed, in 3 min 2 s."""
    done = view.count["done"] + view.count["adopted"]
    rest = ", ".join(f"{n} {word}" for word, n in view.count.items() if word not in ("done", "adopted"))
    return f"{plural(done, 'task')} done{f', {rest}' if rest else ''} in {duration(view.seconds)}"
