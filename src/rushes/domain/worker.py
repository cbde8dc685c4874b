"""Workers: one row per process incarnation, with one lease for all that it holds."""

from dataclasses import dataclass

from rushes.domain.task import LEASE_SECONDS


def worker_id(machine: str, host: str, boot: str, chance: str) -> str:
    """`x86_64-2.studio.a0fb65.17570b12`: the kind of machine, host, boot and chance."""
    return f"{machine}.{host}.{boot[:6]}.{chance}"


def machine_of(worker: str) -> str:
    """The kind of machine a worker ran on, from its id: rates are learnt by it."""
    return worker.partition(".")[0]


NOW = ("now",)  # the lane that jumps every queue; the last slot serves it alone


def bound_lane(lane: str, site: str) -> str:
    """The lane of work that only machines of a site can do, because only they see its original ("": all see it)."""
    return f"{lane}@{site}" if site else lane


def site_of(lane: str) -> str:
    """The site that a lane is bound to, "" for one that every machine can take."""
    return lane.partition("@")[2]


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


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Whether the home's disk has space for more: bytes that are free, and that must stay free."""

    enough: bool
    free: int = 0
    reserve: int = 0
