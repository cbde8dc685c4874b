"""Workers: one row per process incarnation, with one lease for all that it holds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One life of one worker process: host + boot + random, never used again."""

    id: str
    host: str
    boot: str
    pid: int
    pid_start: str  # so that a reused pid is not taken for this process
    lanes: tuple[str, ...] = ("cpu",)
    slots: int = 1
    machine: str = ""  # what rates are learnt by
    version: str = ""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as others see it."""

    incarnation: Incarnation
    alive: bool  # its lease is not over
    draining: bool
    note: str  # why it takes no work: "", "disk full", "draining"
    held: tuple[str, ...]  # task ids
    lease_left: float
    started_at: str
