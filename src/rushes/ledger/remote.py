"""The ledger of a worker without credentials: what it holds, over gRPC. Every write carries the token of its lease.

The server reads results from their manifests and opens plans itself: nothing that a worker says of them is needed.
"""

import time
from collections.abc import Collection, Mapping, Sequence

from rushes.domain.errors import NotFound, StoreAway
from rushes.domain.job import Job, JobCommand
from rushes.domain.result import Result
from rushes.domain.task import Failure, Finish, Lease, LeaseStatus, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.port import Completed, Debt, Renewed, SweepResult
from rushes.remote.client import RemoteServer
from rushes.remote.generated import workers_pb2 as pb
from rushes.remote.messages import pack, unpack

DOUBT_SECONDS = 60.0  # after a claim without an answer, for which a server may still be at it


class RemoteLedger:
    """A WorkLedger."""

    finds_next = True

    def __init__(self, server: RemoteServer) -> None:
        """Raises as `RemoteServer.call`."""
        self._server = server
        self._doubt_until = 0.0  # 0: the answer to every claim came
        self.batch: int = server.call("Hello", pb.HelloRequest()).batch

    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        begun, again = time.monotonic(), bool(self._doubt_until)
        asked = pb.ClaimTasksRequest(worker=worker, lanes=lanes, n=n, hinted=hinted, again=again)
        try:
            found = self._server.call_once("ClaimTasks", asked).leases
        except StoreAway:  # it may have leased tasks, and nothing else would free them
            self._doubt_until = time.monotonic() + DOUBT_SECONDS
            raise
        if begun > self._doubt_until:
            self._doubt_until = 0.0
        new = [lease for lease in found if not self._server.token(lease.task, lease.fence)]
        for lease in new:
            self._server.keep_token(lease.task, lease.fence, lease.task_token)
        return tuple(unpack(Lease, lease) for lease in new)

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        held = {task: token for task, fence in holding.items() if (token := self._server.token(task, fence))}
        told = [pb.HeldTask(task_token=token, progress=progress.get(task, 0.0)) for task, token in held.items()]
        asked = pb.RenewRequest(worker=pack(pb.WorkerInfo, worker), held=told, note=note)
        reply = self._server.call("Renew", asked)
        leases = dict.fromkeys(holding, LeaseStatus.LOST)
        leases |= {task: LeaseStatus(status) for task, status in zip(held, reply.statuses, strict=True)}
        return Renewed(leases, reply.drain, reply.gone)

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:  # noqa: ARG002 - its token names it
        tokens = [self._server.token(finish.task, finish.fence) for finish in finishes]
        told = [pack(pb.TaskFinish, f, task_token=token) for f, token in zip(finishes, tokens, strict=True) if token]
        reply = self._server.call("CompleteTasks", pb.CompleteTasksRequest(finishes=told))
        verdicts = map(Verdict, reply.verdicts)
        return Completed(tuple(next(verdicts) if token else Verdict.LOST for token in tokens), tuple(reply.ready))

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:  # noqa: ARG002
        if not (token := self._server.token(task, fence)):
            return Verdict.LOST
        told = pack(pb.TaskFailure, failure)
        asked = pb.FailTaskRequest(task_token=token, failure=told, delay=delay)
        return Verdict(self._server.call("FailTask", asked).verdict)

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str, delay: float = 0.0) -> None:  # noqa: ARG002
        tokens = [token for task, fence in held if (token := self._server.token(task, fence))]
        self._server.call("GiveBackTasks", pb.GiveBackTasksRequest(task_tokens=tokens, reason=reason, delay=delay))

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:  # noqa: ARG002 - the server pays
        return unpack(SweepResult, self._server.call("Sweep", pb.SweepRequest()))

    def control(self, target: str, command: JobCommand, value: int = 0, stages: Collection[str] = ()) -> Job | None:  # noqa: ARG002
        """Only to leave.

        Raises:
            NotFound: it has left, or this is no order that a worker gives.
        """
        if command is not JobCommand.LEAVE:
            raise NotFound(f"a worker cannot {command.value}")
        self._server.call("Leave", pb.LeaveRequest(worker=target))
        return None

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:  # noqa: ARG002
        """None: the attempt asks for each result by its token, and adopts it."""
        return {}

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        if token := self._server.token(task, fence):
            self._server.call("LogTask", pb.LogTaskRequest(task_token=token, first=first, lines=lines))

    def workers(self) -> tuple[Worker, ...]:
        """None: who else works there is not for it to see."""
        return ()
