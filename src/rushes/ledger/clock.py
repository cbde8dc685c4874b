"""Clocks of a ledger on one machine: boot time for delays, awake time for leases, wall time for people."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

Seconds = Callable[[], float]
Millis = Callable[[], int]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def boot_seconds() -> float:
    """Seconds since the machine started, those it slept included; no clock step moves them."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


def awake_seconds() -> float:
    """The same without those it slept: whoever held a lease slept too, so none is over by that."""
    return time.monotonic()


def boot_id() -> str:
    """The name of this start of the machine: seconds of another one mean nothing here."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else "unknown"


def wall_millis() -> int:
    """Wall time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def iso(millis: int) -> str:
    """ISO 8601 in UTC with milliseconds."""
    stamp = datetime.fromtimestamp(millis // 1000, UTC)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}.{millis % 1000:03d}Z"


def iso_or_none(millis: int | None) -> str | None:
    """The same for a moment that may not have come."""
    return None if millis is None else iso(millis)
