"""Report types of maintenance, in a module of their own: printing them needs none of the code that makes them."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One part, whether it is well, and what to do if not."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class GcReport:
    """How much was set aside and freed, and which history was dropped."""

    results: int
    blobs: int
    size: int
    trimmed: int  # jobs whose old events were dropped
    jobs: int  # that were forgotten


@dataclass(frozen=True, slots=True)
class GcProgress:
    """How far a gc has come: which of its phases it is in, and how much of that is done (of 0: not known)."""

    phase: str
    done: int
    total: int = 0


@dataclass(frozen=True, slots=True)
class Damage:
    """A result that is not what the ledger says, and the task that can make it again."""

    job: str
    task: str
    key: str
    output: str
    what: str
    names_only: bool = False  # its files are sound, but published names are missing or hold other bytes


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was looked at and what was found."""

    results: int
    files: int
    size: int
    damages: tuple[Damage, ...]
    resumed: int = 0  # results of them that an earlier look had read before it was interrupted


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """How far a look has come: results read, jobs looked at, how many jobs there are, and the name of the one now."""

    results: int
    jobs: int
    total: int
    name: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which results are read: all, a random share of them, or one part of several that are disjoint."""

    share: float = 1.0
    part: int = 1
    parts: int = 1

    def takes(self, key: str, seed: str) -> bool:
        """Whether a result is one of them; the share is another one with every seed."""
        in_part = _number(key) % self.parts == self.part - 1
        return in_part and (self.share >= 1 or _number(f"{seed} {key}") < self.share * 2**32)


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds."""

    files: int
    size: int
    copied: int  # files that were not there from an earlier backup
    damaged: tuple[str, ...] = ()  # left out: blobs whose bytes do not match their names, manifests that are none


@dataclass(frozen=True, slots=True)
class RemovalReport:
    """A video that is gone: its jobs, how many results went with it, and the uploaded originals that were deleted."""

    video: str
    jobs: tuple[str, ...]
    results: int = 0
    originals: tuple[str, ...] = ()


EVERYTHING = Selection()
