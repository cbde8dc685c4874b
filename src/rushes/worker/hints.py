"""How a worker uses the transport: in separate threads, because a hint server may be slow or unavailable."""

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from rushes.telemetry import BugLog
from rushes.transport.port import Transport
from rushes.worker import commands, inputs

PAUSE_SECONDS = 1.0
LaneOf = Callable[[str], str | None]  # of a task; None if its stage is not known here
LanesNow = Callable[[Sequence[str]], Sequence[str]]  # the lanes that a worker takes now, of those that it was told
Action = Callable[[], object]


class Hints:
    """Announces after commits, listens when idle, and settles what needs no hint any more."""

    def __init__(
        self,
        transport: Transport,
        lane_of: LaneOf,
        report: inputs.Report,
        bugs: BugLog,
        *,
        takes: bool,
        lanes_now: LanesNow = tuple,
    ) -> None:
        """`takes`: whether hints that wait in a queue are for this worker."""
        self._lanes_now = lanes_now
        self._ignores_hints = transport.queues and not takes
        self._transport, self._lane_of, self._report = transport, lane_of, report
        self._bugs = bugs
        self._sender = Background(bugs)
        self._listeners: dict[tuple[str, ...], Background] = defaultdict(lambda: Background(bugs))
        self._left = False

    def announce(self, tasks: Iterable[str], attempt: int = 1) -> None:
        """Announce that these may be ready for that attempt, each in the lane of its stage."""
        lanes: dict[str, list[str]] = {}
        for task in tasks:
            if lane := self._lane_of(task):
                lanes.setdefault(lane, []).append(task)
        for lane, some in lanes.items():
            self._sender.run(partial(self._transport.announce, lane, some, attempt))

    def settle(self, tasks: Iterable[str]) -> None:
        """These need no hint any more."""
        self._send(self._transport.settle, tasks)

    def keep(self, tasks: Iterable[str]) -> None:
        """These are still being worked on."""
        self._send(self._transport.keep, tasks)

    def listen(self, command: commands.Listen) -> None:
        """Wait for hints and report what comes."""
        if not self._ignores_hints:
            self._listeners[command.lanes].run(partial(self._listen, command))

    def leave(self) -> None:
        """Stop listening."""
        self._left = True
        self._transport.wake()

    def close(self, seconds: float) -> None:
        """Send what still waits, and end."""
        self.leave()
        for listener in self._listeners.values():
            listener.close(seconds)
        self._sender.close(seconds)

    def _send(self, verb: Callable[[list[str]], None], tasks: Iterable[str]) -> None:
        if self._transport.queues and (some := sorted(tasks)):
            self._sender.run(partial(verb, some))

    def _listen(self, command: commands.Listen) -> None:
        tasks: tuple[str, ...] = ()
        if self._left:
            return
        try:
            tasks = self._transport.wait(self._lanes_now(command.lanes), command.seconds, command.n)
        except Exception as e:  # noqa: BLE001 - hints are best effort: sweeps find what they miss
            self._bugs.add(e)
            time.sleep(PAUSE_SECONDS)
        if self._left:
            self.announce(tasks)  # taken from the queue by a worker that leaves: others need them
        else:
            self._report(inputs.Hinted(command.lanes, tasks))


class Background:
    """One thread that runs actions in order; a named one that waits already is not added again."""

    def __init__(self, bugs: BugLog) -> None:
        self._waiting: queue.SimpleQueue[tuple[str, Action] | None] = queue.SimpleQueue()
        self._names: set[str] = set()
        self._unfinished = 0
        self._bugs = bugs
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether something waits or runs."""
        return self._unfinished > 0

    def run(self, action: Action, name: str = "") -> None:
        """Run it when its turn comes."""
        with self._lock:
            if name and name in self._names:
                return
            self._names.add(name)
            self._unfinished += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, daemon=True)
                self._thread.start()
        self._waiting.put((name, action))

    def close(self, seconds: float) -> None:
        """Finish what was added, but wait no longer than so many seconds."""
        if self._thread:
            self._waiting.put(None)
            self._thread.join(seconds)

    def _loop(self) -> None:
        while item := self._waiting.get():
            name, action = item
            with self._lock:
                self._names.discard(name)  # before it runs: what changes meanwhile needs another run
            try:
                action()
            except Exception as e:  # noqa: BLE001 - the next action must find its thread
                self._bugs.add(e)
            with self._lock:
                self._unfinished -= 1
