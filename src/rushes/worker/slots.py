"""The slots of a worker: its children, and their messages as inputs."""

import secrets
import threading
from collections import Counter
from collections.abc import Callable

from rushes.domain import errors
from rushes.domain.errors import NeverWorks, RushesError
from rushes.domain.keys import JSON
from rushes.domain.task import Failure, Finish, Lease
from rushes.worker import inputs
from rushes.worker.child import Child, ChildDeps
from rushes.worker.child_output import Send
from rushes.worker.inputs import Report

OnExit = Callable[[], None]
UNPROVEN = 3  # times


class Slots:
    """A child per slot, started when used and replaced after any kill, growth in memory or so many tasks."""

    def __init__(self, deps: ChildDeps, report: Report, keep_log: Send, on_exit: OnExit, tasks: int) -> None:
        """`report` gets inputs, `keep_log` gets lines, `on_exit` is called when a child has exited."""
        self._deps, self._tasks = deps, tasks
        self._report, self._keep_log, self._on_exit = report, keep_log, on_exit
        self._children: dict[int, Child] = {}
        self._unproven: Counter[str] = Counter()  # by task: how often only its slot said that the disk is full
        self._lock = threading.Lock()  # children end while others are started in their place

    def start(self, slot: int, lease: Lease) -> None:
        """Run a task in a slot.

        Raises:
            OSError: no process can be started.
        """
        self._child(slot).start(lease)

    def kill(self, slot: int, reason: str) -> None:
        """End what a slot runs, at once."""
        child = self._children.get(slot)
        if child:
            child.kill(reason)

    def check(self, memory: int) -> None:
        """Pass on what was printed, and kill who uses more memory than allowed (0 = no limit)."""
        for child in list(self._children.values()):
            child.output.send(self._keep_log)
            if memory and child.memory() > memory:
                child.kill("memory")

    def close(self) -> None:
        """End every child."""
        for child in list(self._children.values()):
            child.close()

    def _child(self, slot: int) -> Child:
        child = self._children.get(slot)
        if child and child.tasks_run >= self._tasks:
            child.close()
            child = None
        if child and child.task:
            child.kill("left behind")  # its answer would be taken for that of the next task
        if child is None or child.killed:
            child = Child(self._deps, lambda c, message: self._on_message(slot, c, message))
            with self._lock:
                self._children[slot] = child
        return child

    def _on_message(self, slot: int, child: Child, message: JSON) -> None:
        """Called from a thread of the child: turn its message into an input."""
        lease = child.task
        if message["type"] == "exited":
            with self._lock:
                if self._children.get(slot) is child:
                    del self._children[slot]
            self._on_exit()
        if lease is None:
            return
        if message["type"] == "progress":
            self._report(inputs.Progressed(lease.task, message["fraction"]))
            return
        if message["type"] in ("finished", "failed"):
            child.output.end()
        child.output.send(self._keep_log)
        if message.get("unproven") and not self._is_believed(lease.task):
            message["counts"] = True
        if message.get("replace"):
            child.kill("replaced")  # a thread of its task is still at work
        input = outcome(lease, message, child.killed, child.output.last())
        child.release()
        self._report(input)

    def _is_believed(self, task: str) -> bool:
        """Whether a task is given back again because its slot says so; there is a limit, or it would never end."""
        with self._lock:
            self._unproven[task] += 1
            return self._unproven[task] <= UNPROVEN


def outcome(lease: Lease, message: JSON, killed: str, lines: tuple[str, ...]) -> inputs.Input:
    """What the last message of a child about a task means."""
    if message["type"] in ("finished", "adopted"):
        finish = Finish(lease.task, lease.fence, message["results"], seconds=message["seconds"])
        return inputs.TaskFinished(finish)
    if message["type"] in ("failed", "refused"):
        failure = Failure(message["kind"], message["message"], message["hint"], message["verdict"], lines)
        final, counts, delay = message["final"], message["counts"], message.get("delay", 0.0)
        return inputs.TaskFailed(lease.task, lease.fence, failure, jitter(), final, counts, delay)
    if message["type"] == "not_sent":
        return given_back(lease, "SlotDied", message["message"])
    return inputs.TaskFailed(lease.task, lease.fence, _death(message["code"], killed, lines), jitter())


def given_back(lease: Lease, kind: str, message: str) -> inputs.TaskFailed:
    """A task that was never started: it is given back, and no failure is counted."""
    return inputs.TaskFailed(lease.task, lease.fence, Failure(kind, message, "", ""), 0.0, counts=False)


def never_started(lease: Lease, error: NeverWorks) -> inputs.TaskFailed:
    """A task that can never be started: a dead letter at once."""
    failure = Failure(type(error).__name__, str(error), error.advice, error.verdict)
    return inputs.TaskFailed(lease.task, lease.fence, failure, 0.0, final=True)


def jitter() -> float:
    """A random number between 0 and 1, so that what failed together is not retried together."""
    return secrets.randbelow(1000) / 1000


def _death(code: int, killed: str, lines: tuple[str, ...]) -> Failure:
    kind: type[RushesError] = {"time": errors.SlotTimedOut, "memory": errors.SlotTooBig}.get(killed, errors.SlotDied)
    signal = -code if code < 0 else None
    message = {
        "time": "it ran longer than task_seconds allows",
        "memory": "it used more memory than slot_memory_mb allows",
    }.get(killed, f"ended by signal {signal}" if signal else f"exited with code {code} in the middle of its work")
    return Failure(kind.__name__, message, kind.hint, kind.verdict, lines, signal)
