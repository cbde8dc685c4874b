"""A worker that takes tasks of a home and does nothing with them, or fails them for good."""

from pathlib import Path

from rushes.domain.task import Failure, Lease
from rushes.ledger.sqlite import SqliteLedger
from rushes.library import Library
from rushes.wiring.incarnation import incarnation


def take(home: Path, n: int = 1) -> tuple[str, tuple[Lease, ...]]:
    """So many tasks in the hands of a living worker, and its id; its lease holds an hour, however slow the machine."""
    ledger = SqliteLedger(home / "ledger.sqlite", shift=3600.0)
    me = incarnation(("cpu",), n, "me")
    try:
        ledger.renew(me, {}, {})
        return me.id, ledger.claim(me.id, ("cpu",), n)
    finally:
        ledger.close()


def leave(home: Path, worker: str, leases: tuple[Lease, ...]) -> None:
    """The worker gives everything back."""
    with Library(home) as library:
        library.home.ledger.give_back(worker, [(lease.task, lease.fence) for lease in leases], "drained")


def kill(home: Path, *failures: Failure) -> None:
    """As many ready tasks as there are failures are dead of them, in this order, a second apart."""
    worker, leases = take(home, len(failures))
    for second, (lease, failure) in enumerate(zip(leases, failures, strict=True)):
        ledger = SqliteLedger(home / "ledger.sqlite", shift=float(second))
        ledger.fail(worker, lease.task, lease.fence, failure, None)
        ledger.close()


def films(folder: Path, count: int) -> list[Path]:
    """Files that can be added, and are no films."""
    paths = [folder / f"film{n}.mp4" for n in range(count)]
    for n, path in enumerate(paths):
        path.write_bytes(b"\0\0\0\x18ftypmp42" + bytes([n]))
    return paths
