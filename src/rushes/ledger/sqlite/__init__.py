"""The ledger on SQLite: one file on a local disk, several threads and processes."""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rushes.domain.errors import WrongHome
from rushes.domain.task import Lease
from rushes.domain.worker import Incarnation
from rushes.ledger import process
from rushes.ledger.clock import Millis, Seconds, awake_seconds, boot_id, boot_seconds, wall_millis
from rushes.ledger.port import Debt, Renewed, SweepResult
from rushes.ledger.rules import lease_over
from rushes.ledger.sql import SqlLedger, queries, sweep, work
from rushes.ledger.sqlite import filesystem, schema
from rushes.ledger.sqlite.store import Store, Transaction

T = TypeVar("T")


class SqliteLedger(SqlLedger):
    """Jobs, tasks, leases, results, events and workers in one SQLite file on a local disk."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Seconds | None = None,
        awake: Seconds | None = None,
        shift: float = 0.0,
        wall: Millis = wall_millis,
        host: str | None = None,
        boot: str | None = None,
        is_gone: Callable[[Incarnation], bool] = process.is_gone,
        mounts: Callable[[], str] = filesystem.mounts,
        take_over: bool = False,
        places: Mapping[str, str] | None = None,
    ) -> None:
        """`places` says for the tables' readers where `originals` and `transcripts` of the home lie."""
        super().__init__(is_gone)
        kind = filesystem.network_file_system(path.parent, mounts())
        if kind:
            raise WrongHome(f"{path.parent} lies on a network file system ({kind})", "Keep the home on a local disk.")
        seconds, lasting = clock or boot_seconds, awake or clock or awake_seconds
        self._flows = False  # the last claim found something: the next need not look first whether there is any
        self._store = Store(path, lambda: seconds() + shift, lambda: lasting() + shift, wall)
        try:
            self._move_in(host or process.host_id(), boot or boot_id(), take_over, places or {})
        except BaseException:
            self.close()
            raise

    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks in those lanes; a look that blocks nobody comes first when there may be none."""
        if not self._flows and not self._read(lambda tx: _may_claim(tx, worker, lanes)):
            return ()
        leases = self._write("claim", lambda tx: _claim(tx, worker, lanes, min(n, self.batch), hinted))
        self._flows = bool(leases)
        return leases

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        """Enter or keep the worker's row, unless a newer version has changed the schema so that we cannot go on."""
        self.check_schema()
        return super().renew(worker, holding, progress, note)

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """As on every SQL ledger; if there is nothing to write, it need not wait for its turn."""
        with self._store.read() as tx:
            idle = not (paid or sweep.ended_workers(tx, self._is_gone) or tx.column("to_sweep", now=tx.now)[0])
            if idle and not tx.column("quiet")[0]:
                return sweep.found(tx, limit)
        return super().sweep(limit, paid)

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Jobs whose event number moved since the cursor; call again until there are none."""
        with self._store.read() as tx:
            history, newest = tx.column("home", name="history")[0], tx.column("newest_change")[0] or 0
            theirs, _, number = cursor.partition("@")
            after = int(number) if theirs == history and int(number) <= newest else 0
            rows = tx.all("changed", after=after, limit=queries.CHANGES)
        return tuple(row[0] for row in rows), f"{history}@{rows[-1][1] if rows else after}"

    # Beside the port
    def backup(self, to: Path) -> None:
        """A whole copy of the ledger while others go on writing."""
        self._store.file.backup(to)

    def check_schema(self) -> None:
        """Ask whether the schema is still one that this process knows.

        Raises:
            WrongHome: a newer rushes has changed it.
        """
        with self._store.file.read() as db:
            schema.check(db)

    def close(self) -> None:
        """Close the file."""
        self._store.file.close()

    def _write(self, verb: str, body: Callable[[Transaction], T]) -> T:
        with self._store.write(verb) as tx:
            return body(tx)

    def _read(self, body: Callable[[Transaction], T]) -> T:
        with self._store.read() as tx:
            return body(tx)

    def _move_in(self, host: str, boot: str, take_over: bool, places: Mapping[str, str]) -> None:
        """Note whose home this is now; after another boot, every lease is over and every wait has ended."""
        facts = {"host": host, "boot": boot, **places}
        with self._store.read() as tx:
            known = all(tx.column("home", name=name) == [value] for name, value in facts.items())
            if known and tx.column("home", name="history"):
                return
        with self._store.write("move_in") as tx:
            _check_host(tx, host, boot, take_over)
            if tx.column("home", name="boot") != [boot]:
                tx.run("end_all_leases")
                tx.run("end_all_backoffs")
            if not tx.column("home", name="history"):
                tx.run("set_home", name="history", value=f"ledger-{secrets.token_hex(8)}")
            for name, value in facts.items():
                tx.run("set_home", name=name, value=value)


def _check_host(tx: Transaction, host: str, boot: str, take_over: bool) -> None:
    same = tx.column("home", name="host") in ([], [host]) or tx.column("home", name="boot") == [boot]
    left = tx.column("workers_left")
    if left and not same and not take_over:
        raise WrongHome(
            f"another machine has used this home and {len(left)} of its workers may still run ({left[0]})",
            "Stop them there. If that machine is gone for good: rushes init --take-over",
        )


def _may_claim(tx: Transaction, worker: str, lanes: Sequence[str]) -> bool:
    return _own_number(tx, worker) is not None and any(tx.one("claimable", lane=lane) for lane in lanes)


def _claim(tx: Transaction, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str]) -> tuple[Lease, ...]:
    number = _own_number(tx, worker)
    if number is None:
        return ()
    asked = {"lanes": list(lanes), "ids": list(hinted), "every": not hinted, "n": n}
    return work.leases(tx.all("claim", number=number, at=tx.wall, **asked))


def _own_number(tx: Transaction, worker: str) -> int | None:
    """The number of a worker's row, None if it drains.

    Raises:
        LeaseLost: the worker's own row is over.
    """
    row = tx.one("worker_lease", worker=worker, now=tx.awake)
    if row is None:
        raise lease_over(worker)
    return None if row[1] else int(row[0])
