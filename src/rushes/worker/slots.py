"""The slots of a worker: its children, and what they say as happenings."""

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence

from rushes.domain import errors
from rushes.domain.errors import RushesError
from rushes.domain.keys import JSON
from rushes.domain.result import Result
from rushes.domain.task import Failure, Finish, Lease
from rushes.worker import inputs
from rushes.worker.child import Child
from rushes.worker.child_output import Send

Tell = Callable[[inputs.Input], None]


class Slots:
    """A child per slot, started when used and replaced after any kill, growth in memory or so many tasks."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        tell: Tell,
        keep_log: Send,
        died: Callable[[], None],
        tasks: int,
    ) -> None:
        """`tell` hears what happened, `keep_log` gets lines, `died` is called when a child is gone."""
        self._argv, self._env, self._tasks = argv, env, tasks
        self._tell, self._keep_log, self._died = tell, keep_log, died
        self._children: dict[int, Child] = {}
        self._lock = threading.Lock()  # children end while others are started in their place

    def start(self, slot: int, lease: Lease) -> None:
        """Run a task in a slot.

        Raises:
            OSError: no process can be started.
        """
        self._child(slot).start(lease)

    def kill(self, slot: int, why: str) -> None:
        """End what a slot runs, at once."""
        child = self._children.get(slot)
        if child:
            child.kill(why)

    def look_after(self, memory: int) -> None:
        """Hand on what was printed, and end whoever uses more memory than allowed (0 = no limit)."""
        for child in list(self._children.values()):
            child.lines.send(self._keep_log)
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
            child.kill("left behind")  # its answer would be taken for that of the next
        if child is None or child.killed:
            child = Child(self._argv, self._env, lambda c, said: self._heard(slot, c, said))
            with self._lock:
                self._children[slot] = child
        return child

    def _heard(self, slot: int, child: Child, said: JSON) -> None:
        """Called from a thread of the child: turn what it says into a happening."""
        lease = child.task
        if said["say"] == "died":
            with self._lock:
                if self._children.get(slot) is child:
                    del self._children[slot]
            self._died()
        if lease is None:
            return
        if said["say"] == "progress":
            self._tell(inputs.Progressed(lease.task, float(said["fraction"])))
            return
        if said["say"] in ("made", "broke"):
            child.lines.end()
        child.lines.send(self._keep_log)
        told = outcome(lease, said, child.killed, child.lines.last())
        child.release()
        self._tell(told)


def outcome(lease: Lease, said: JSON, killed: str, lines: tuple[str, ...]) -> inputs.Input:
    """What a child's last word about a task means."""
    if said["say"] == "made":
        results = tuple(Result(**r) for r in said["results"])
        return inputs.TaskFinished(Finish(lease.task, lease.fence, results, seconds=float(said["seconds"])))
    if said["say"] == "broke":
        failure = Failure(said["kind"], said["message"], said["hint"], said["verdict"], lines)
        return inputs.TaskFailed(lease.task, lease.fence, failure, jitter(), said["final"], said["counts"])
    if said["say"] == "unsent":
        return handed_back(lease, "SlotDied", said["message"])
    return inputs.TaskFailed(lease.task, lease.fence, _death(said["code"], killed, lines), jitter())


def handed_back(lease: Lease, kind: str, message: str) -> inputs.TaskFailed:
    """A task that was never begun: handed back, counted as nothing."""
    return inputs.TaskFailed(lease.task, lease.fence, Failure(kind, message, "", ""), 0.0, counts=False)


def jitter() -> float:
    """Chance between 0 and 1, so that what failed together is not tried again together."""
    return secrets.randbelow(1000) / 1000


def _death(code: int, killed: str, lines: tuple[str, ...]) -> Failure:
    kind: type[RushesError] = {"time": errors.SlotTimedOut, "memory": errors.SlotTooBig}.get(killed, errors.SlotDied)
    signal = -code if code < 0 else None
    how = {
        "time": "it ran longer than task_seconds allows",
        "memory": "it used more memory than slot_memory_mb allows",
    }.get(killed, f"ended by signal {signal}" if signal else f"exited with code {code} in the middle of its work")
    return Failure(kind.__name__, how, kind.hint, kind.verdict, lines, signal)
