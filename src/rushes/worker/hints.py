"""How a worker uses the transport: in threads of its own, because a server of hints may be slow or away."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial

from rushes.telemetry import log
from rushes.transport.port import Transport
from rushes.worker import commands, inputs
from rushes.worker.background import Background

PAUSE_SECONDS = 1.0


class Hints:
    """Announces after commits, listens when idle, and settles what needs no hint any more."""

    def __init__(
        self,
        transport: Transport,
        lane_of: Callable[[str], str | None],
        tell: Callable[[inputs.Input], None],
        takes: bool,
    ) -> None:
        """`takes`: whether hints that wait in a queue are for this worker."""
        self._deaf = transport.queues and not takes
        self._transport, self._lane_of, self._tell = transport, lane_of, tell
        self._out = Background()
        self._ears: dict[tuple[str, ...], Background] = defaultdict(Background)
        self._left = False

    def announce(self, tasks: Iterable[str]) -> None:
        """Say that these may be ready; whoever knows their stage knows their lane."""
        lanes: dict[str, list[str]] = {}
        for task in tasks:
            if lane := self._lane_of(task):
                lanes.setdefault(lane, []).append(task)
        for lane, some in lanes.items():
            self._out.send(partial(self._transport.announce, lane, some))

    def settle(self, tasks: Iterable[str]) -> None:
        """These need no hint any more."""
        self._say(self._transport.settle, tasks)

    def keep(self, tasks: Iterable[str]) -> None:
        """These are still being worked on."""
        self._say(self._transport.keep, tasks)

    def listen(self, deed: commands.Listen) -> None:
        """Wait for hints; what comes is told."""
        if not self._deaf:
            self._ears[deed.lanes].send(partial(self._listen, deed))

    def leave(self) -> None:
        """Stop listening."""
        self._left = True
        self._transport.wake()

    def close(self, seconds: float) -> None:
        """Say what is still to be said, and end."""
        self.leave()
        for ear in self._ears.values():
            ear.close(seconds)
        self._out.close(seconds)

    def _say(self, verb: Callable[[list[str]], None], tasks: Iterable[str]) -> None:
        if self._transport.queues and (some := sorted(tasks)):
            self._out.send(partial(verb, some))

    def _listen(self, deed: commands.Listen) -> None:
        tasks: tuple[str, ...] = ()
        if self._left:
            return
        try:
            tasks = self._transport.wait(deed.lanes, deed.seconds, deed.n)
        except Exception:  # noqa: BLE001 - a hint is worth no failure
            log.exception("cannot receive hints")
            time.sleep(PAUSE_SECONDS)
        if self._left:
            self.announce(tasks)  # taken by somebody who leaves: it is for others
        else:
            self._tell(inputs.Hinted(deed.lanes, tasks))
