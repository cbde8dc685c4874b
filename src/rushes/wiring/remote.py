"""A worker without credentials: a server, and local folders for copies and scratch."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from shutil import disk_usage
from typing import NoReturn

from rushes.blobs.local_cache import LocalCache
from rushes.blobs.remote import RemoteBlobs
from rushes.domain.errors import Refused
from rushes.domain.task import Lease
from rushes.home import Home, version
from rushes.index.port import Index
from rushes.ledger.port import Ledger
from rushes.ledger.remote import RemoteLedger
from rushes.records.port import Records
from rushes.remote.client import RemoteServer, ServerAddress
from rushes.sources.remote import RemoteFilm
from rushes.transport.port import Describe, Transport
from rushes.transport.remote import RemoteHints
from rushes.wiring.setup import Setup
from rushes.wiring.work_ports import WorkPorts
from rushes.worker.broker.attempt import AttemptDeps, EngineOf

COPIES_BYTES = 10 << 30


class RemoteSetup(Setup):
    """Only a worker can be run on it: everything else is the server's."""

    @cached_property
    def server(self) -> RemoteServer:
        """The connection. Raises Refused: there is no worker token, or the address cannot be read."""
        s = self._settings
        return RemoteServer(ServerAddress(s.store, s.worker_token, s.grpc_ca, s.grpc_cert, s.grpc_key))

    @cached_property
    def work_ledger(self) -> RemoteLedger:
        """What of the server's ledger a worker needs. Raises StoreAway, NotAllowed."""
        return RemoteLedger(self.server)

    @cached_property
    def copies(self) -> LocalCache:
        """Copies of inputs and films on this machine."""
        return LocalCache(self._home / "copies", COPIES_BYTES)

    def attempt_deps(self, version: str, engine_of: EngineOf, lease: Lease) -> AttemptDeps:
        """What the attempt at one task works with: its own files alone."""
        token = self.server.token(lease.task, lease.fence)
        blobs, film = RemoteBlobs(self.server, self.copies, token), RemoteFilm(self.server, self.copies, token)
        return AttemptDeps(blobs, blobs.adopt, lambda _taken_in, _sha256: film, version, engine_of)

    def transport(self, _lanes: Sequence[str], _describe: Describe) -> Transport:
        """Waiting at the server."""
        return RemoteHints(self.server)

    def ledger(self) -> Ledger:
        """The server's alone."""
        _refuse()

    def records(self) -> Records:
        """The server's alone."""
        _refuse()

    def index(self) -> Index:
        """The server's alone."""
        _refuse()

    def snapshots(self, _ledger: Ledger, _records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """The server's alone."""
        _refuse()

    def check_schema(self, _ledger: Ledger, /) -> None:
        """The server's alone."""

    def migrate(self, *, check: bool = False) -> tuple[str, ...]:  # noqa: ARG002
        """The server's alone."""
        _refuse()

    def clock(self) -> None:
        """The server's alone."""


def remote_ports(home: Home, engine_of: EngineOf) -> WorkPorts:
    """What a worker is given of its server, which opens plans and publishes names by itself."""
    stores = home.stores
    assert isinstance(stores, RemoteSetup)
    ledger = stores.work_ledger
    return WorkPorts(
        ledger=ledger,
        free_bytes=lambda: disk_usage(stores.copies.folder).free,
        sweep=lambda: (ledger.sweep(), False),
        open_plan=lambda _lease, _finish: None,
        check_plan=lambda _lease: (),
        attempt_deps=partial(stores.attempt_deps, version(), engine_of),
    )


def _refuse() -> NoReturn:
    raise Refused("only workers can use the address of a server", "Use its web pages or its API for everything else.")
