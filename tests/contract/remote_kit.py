"""The working half of the ledger over gRPC, on a SQLite ledger; what a worker never asks goes straight there."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc

from rushes.domain.job import JobCommand
from rushes.domain.result import Result
from rushes.domain.task import Finish, Lease
from rushes.ledger.port import Completed, Ledger
from rushes.ledger.remote import RemoteLedger
from rushes.library.remote_work.leases import RemoteLeases
from rushes.records.sqlite import SqliteRecords
from rushes.remote.client import RemoteServer, ServerAddress
from rushes.remote.generated import workers_pb2
from rushes.surfaces.rpc.server import service_handler
from rushes.surfaces.rpc.workers import WorkersApi
from rushes.transport.poll import Poll

# What the token of a lease decides otherwise than the port: who holds it may use it, and without it nothing is said.
BY_TOKEN = ("a_stale_fence_changes_nothing_in_any_state[remote-cancelled]", "another_worker_cannot_use_a_fence",
            "silent_for_as_long_as_its_lease", "lane_gpu_is_left_to_the_workers")  # fmt: skip
REMOTE = ("claim", "renew", "fail", "give_back", "log", "batch", "finds_next")  # complete and control: see below


class KitLeases(RemoteLeases):
    """Takes every lane and any name of a worker; the results of toys are in no manifest."""

    def __init__(self, home: Any) -> None:
        super().__init__(home)
        self.results: dict[str, tuple[Result, ...]] = {}

    def receipt(self, name: str, worker: str) -> str:
        return worker

    def lanes(self, asked: Sequence[str]) -> tuple[str, ...]:
        return tuple(asked)

    def results_of(self, lease: Lease) -> tuple[Result, ...]:
        return self.results[lease.task]


class RemoteHandle:
    """A ledger whose worker's verbs go through a server."""

    def __init__(self, direct: Any, folder: Path) -> None:
        self._direct, self._records = direct, SqliteRecords(folder / "records.sqlite")
        home = SimpleNamespace(ledger=direct, transport=Poll(), owner="me", lane_of=lambda _task: "cpu", specs={},
                               records=self._records)  # fmt: skip
        self._leases = KitLeases(home)
        self._server = grpc.server(ThreadPoolExecutor(4))
        api = WorkersApi(cast("Any", SimpleNamespace(check=lambda _token: "kit")), self._leases)
        self._server.add_generic_rpc_handlers([service_handler(workers_pb2, "WorkerService", api)])
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self._client = RemoteServer(ServerAddress(f"grpc://127.0.0.1:{port}", "kit"))
        self._remote = RemoteLedger(self._client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote if name in REMOTE else self._direct, name)

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        self._leases.results |= {finish.task: finish.results for finish in finishes}
        return self._remote.complete(worker, finishes)

    def control(self, target: str, command: JobCommand, *more: Any, **named: Any) -> Any:
        remote = command is JobCommand.LEAVE
        return (self._remote if remote else cast("Ledger", self._direct)).control(target, command, *more, **named)

    def close(self) -> None:
        self._client.close()
        self._server.stop(None).wait()
        self._records.close()
        self._direct.close()
