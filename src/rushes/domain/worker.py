"""Workers: one row per process incarnation, with one lease for all that it holds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rushes.domain.keys import short
from rushes.domain.task import LEASE_SECONDS


def worker_id(machine: str, host: str, boot: str, chance: str) -> str:
    """`x86_64-2.studio.a0fb65.17570b12`: the kind of machine, host, boot and chance."""
    return f"{machine}.{host}.{boot[:6]}.{chance}"


def machine_of(worker: str) -> str:
    """The kind of machine a worker ran on, from its id: rates are learnt by it."""
    return worker.partition(".")[0]


CPU_LANE, GPU_LANE = "cpu", "gpu"
ENGINE_AWAY = "no inference service responds"  # the note of a worker that leaves lane gpu for a while
QUEUE_STAGE, _OWN_QUEUE = "work", "q-"  # of jobs in queues of one's own: their one task, and how their lanes begin
QUEUE_SOURCE = "queue:"  # stands before the name of the queue where other jobs have the path of their film
NOW = ("now",)  # the lane that jumps every queue; the last slot serves it alone


def bound_lane(lane: str, site: str) -> str:
    """The lane of work that only machines of a site can do, because only they see its original ("": all see it)."""
    return f"{lane}@{site}" if site else lane


def site_of(lane: str) -> str:
    """The site that a lane is bound to, "" for one that every machine can take."""
    return lane.partition("@")[2]


def queue_lane(owner: str, queue: str) -> str:
    """The lane of an owner's own queue: nobody else takes from it, and no stage is in it."""
    return f"{_OWN_QUEUE}{queue}-{short(owner)}"


def queue_of(lane: str) -> str:
    """The queue of a lane, as the documents name it: `default` of `q-default-...`, `cpu` of `cpu`."""
    return lane.removeprefix(_OWN_QUEUE).rpartition("-")[0] if lane.startswith(_OWN_QUEUE) else lane


def lanes_at(lanes: tuple[str, ...], site: str) -> tuple[str, ...]:
    """These lanes, and what is bound to a site of each."""
    return (*lanes, *(bound_lane(lane, site) for lane in lanes)) if site else lanes


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One life of one worker process; its id is never used again."""

    id: str
    host: str
    boot: str
    pid: int
    pid_start: str  # so that a reused pid is not taken for this process
    lanes: tuple[str, ...] = ("cpu",)
    slots: int = 1
    machine: str = ""  # what rates are learnt by
    version: str = ""
    owner: str = ""  # whose settings it was started with; it works for everybody
    lease_seconds: float = LEASE_SECONDS  # how long it may be silent, from its last renewal on


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as others see it."""

    incarnation: Incarnation
    alive: bool  # its lease is not over
    draining: bool
    note: str  # why it takes no work: "", "disk full", "draining: why"
    held: tuple[str, ...]  # task ids
    lease_left: float
    started_at: str

    @property
    def takes_tasks(self) -> bool:
        """Whether it asks for work; else it is the lease of one job that a program took from a queue of its own."""
        return bool(self.incarnation.lanes)


def missing_gpu_lanes(lanes: Sequence[str]) -> tuple[str, ...]:
    """The lanes gpu that a worker does not take though it takes the lane cpu beside them."""
    beside = (bound_lane(GPU_LANE, site_of(lane)) for lane in lanes if lane.partition("@")[0] == CPU_LANE)
    return tuple(lane for lane in beside if lane not in lanes)


def unserved_lanes(lanes: Sequence[str], workers: Iterable[Worker]) -> tuple[str, ...]:
    """Those of the missing gpu lanes that no live worker takes; none if no worker is known."""
    taken = {lane for w in workers if w.alive and not w.draining for lane in w.incarnation.lanes}
    return tuple(lane for lane in missing_gpu_lanes(lanes) if taken and lane not in taken)


def lanes_of(worker: Worker, workers: Iterable[Worker]) -> tuple[str, ...]:
    """What one of these workers takes now."""
    return (*worker.incarnation.lanes, *unserved_lanes(worker.incarnation.lanes, workers))


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Whether the home's disk has space for more: bytes that are free, and that must stay free."""

    enough: bool
    free: int = 0
    reserve: int = 0
