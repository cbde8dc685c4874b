"""WorkerService: leases and files for workers without credentials."""

from collections.abc import Iterator
from typing import Any

from rushes.domain.errors import NotAllowed, Refused
from rushes.domain.task import Failure
from rushes.domain.worker import Incarnation
from rushes.library import Library
from rushes.library.access.worker_tokens import WorkerTokens
from rushes.library.remote_work.files import FileAnswer, RemoteFiles
from rushes.library.remote_work.leases import RemoteLeases
from rushes.remote.generated import workers_pb2 as pb
from rushes.remote.messages import pack, unpack

TEXT = 200  # characters of what a worker says of itself
BEARER = "Bearer "


class WorkersApi:
    """The methods of WorkerService; each asks for a worker token."""

    def __init__(self, tokens: WorkerTokens, leases: RemoteLeases) -> None:
        self._tokens, self._leases, self._files = tokens, leases, RemoteFiles(leases)

    @staticmethod
    def of(library: Library) -> "WorkersApi":
        """Those of a library."""
        return WorkersApi(WorkerTokens(library.home), RemoteLeases(library.home))

    def hello(self, _request: pb.HelloRequest, context: Any) -> pb.HelloResponse:
        """How the ledger is worked with."""
        self._name(context)
        return pb.HelloResponse(batch=self._leases.batch)

    def renew(self, request: pb.RenewRequest, context: Any) -> pb.RenewResponse:
        """Enter, or keep a row."""
        worker = unpack(Incarnation, request.worker)
        if max(map(len, (worker.host, worker.boot, worker.pid_start, worker.machine, worker.version))) > TEXT:
            raise Refused("the description of this worker is too long")
        held = [(one.task_token, one.progress) for one in request.held]
        statuses, renewed = self._leases.renew(self._name(context), worker, held, request.note)
        return pb.RenewResponse(statuses=statuses, drain=renewed.drain, gone=renewed.gone)

    def claim_tasks(self, request: pb.ClaimTasksRequest, context: Any) -> pb.ClaimTasksResponse:
        """Leases with their tokens."""
        name, hinted = self._name(context), tuple(request.hinted)
        found = self._leases.claim(name, request.worker, request.lanes, request.n, hinted, again=request.again)
        return pb.ClaimTasksResponse(leases=[pack(pb.TaskLease, lease, task_token=token) for lease, token in found])

    def complete_tasks(self, request: pb.CompleteTasksRequest, context: Any) -> pb.CompleteTasksResponse:
        """Done."""
        self._name(context)
        finishes = [(finish.task_token, finish.adopted, finish.seconds) for finish in request.finishes]
        completed = self._leases.complete(finishes)
        return pb.CompleteTasksResponse(verdicts=completed.verdicts, ready=completed.ready)

    def fail_task(self, request: pb.FailTaskRequest, context: Any) -> pb.FailTaskResponse:
        """The attempt failed."""
        self._name(context)
        delay = request.delay if request.HasField("delay") else None
        verdict = self._leases.fail(request.task_token, unpack(Failure, request.failure), delay)
        return pb.FailTaskResponse(verdict=verdict)

    def give_back_tasks(self, request: pb.GiveBackTasksRequest, context: Any) -> pb.GiveBackTasksResponse:
        """Free at once."""
        self._name(context)
        self._leases.give_back(request.task_tokens, request.reason, request.delay)
        return pb.GiveBackTasksResponse()

    def log_task(self, request: pb.LogTaskRequest, context: Any) -> pb.LogTaskResponse:
        """What an attempt has printed."""
        self._name(context)
        self._leases.log(request.task_token, request.first, request.lines)
        return pb.LogTaskResponse()

    def sweep(self, _request: pb.SweepRequest, context: Any) -> pb.SweepResponse:
        """Release, announce, publish."""
        self._name(context)
        response: pb.SweepResponse = pack(pb.SweepResponse, self._leases.sweep())
        return response

    def wait(self, request: pb.WaitRequest, context: Any) -> pb.WaitResponse:
        """Until there may be work."""
        self._name(context)
        hinted = self._leases.wait(request.lanes, request.seconds, context.is_active)
        return pb.WaitResponse(busy=hinted is None, hinted=bool(hinted))

    def leave(self, request: pb.LeaveRequest, context: Any) -> pb.LeaveResponse:
        """It holds nothing any more."""
        self._leases.leave(self._name(context), request.worker)
        return pb.LeaveResponse()

    def adopt(self, request: pb.AdoptRequest, context: Any) -> pb.AdoptResponse:
        """A result that is there."""
        self._name(context)
        found = self._files.adopt(request.task_token, request.key)
        return pb.AdoptResponse(result=pack(pb.CommittedResult, found) if found else None)

    def read_manifest(self, request: pb.ReadManifestRequest, context: Any) -> Iterator[pb.Chunk]:
        """Of an input."""
        self._name(context)
        return _chunks(self._files.manifest(request.task_token, request.key))

    def read_blob(self, request: pb.ReadBlobRequest, context: Any) -> Iterator[pb.Chunk]:
        """Of an input."""
        self._name(context)
        return _chunks(self._files.blob(request.task_token, request.sha256))

    def describe_original(self, request: pb.DescribeOriginalRequest, context: Any) -> pb.DescribeOriginalResponse:
        """The film."""
        self._name(context)
        film: pb.DescribeOriginalResponse = pack(pb.DescribeOriginalResponse, self._files.film(request.task_token))
        return film

    def read_original(self, request: pb.ReadOriginalRequest, context: Any) -> Iterator[pb.Chunk]:
        """A block of the film."""
        self._name(context)
        if request.block < 0:
            raise Refused("block numbers start at 0")
        return _chunks(self._files.film_block(request.task_token, request.block))

    def write_blob(self, requests: Iterator[pb.WriteBlobRequest], context: Any) -> pb.WriteBlobResponse:
        """Store what a task made."""
        self._name(context)
        head = _first(requests)
        self._files.write(head.task_token, head.sha256, head.size, (part.data for part in requests))
        return pb.WriteBlobResponse()

    def create_manifest(self, requests: Iterator[pb.CreateManifestRequest], context: Any) -> pb.CreateManifestResponse:
        """Of a result of the task."""
        self._name(context)
        head, data = _first(requests), bytearray()
        data += head.data
        for part in requests:
            data += part.data
            if len(data) > LARGEST_MANIFEST:
                raise Refused(f"a manifest has at most {LARGEST_MANIFEST} bytes")
        return pb.CreateManifestResponse(created=self._files.create(head.task_token, head.key, bytes(data)))

    def _name(self, context: Any) -> str:
        """The name of the caller's worker token. Raises NotAllowed."""
        told = str(dict(context.invocation_metadata()).get("authorization", ""))
        if not told.startswith(BEARER):
            raise NotAllowed("a worker token is needed", "Send it as authorization: Bearer TOKEN.")
        return self._tokens.check(told.removeprefix(BEARER))


LARGEST_MANIFEST = 32 << 20


def _first(requests: Iterator[Any]) -> Any:
    head = next(requests, None)
    if head is None:
        raise Refused("nothing was sent")
    return head


def _chunks(answer: FileAnswer) -> Iterator[pb.Chunk]:
    """First how many bytes there are, so that a worker that has them already can leave."""
    yield pb.Chunk(size=answer.size, address=answer.address)
    for data in answer.parts:
        yield pb.Chunk(data=data)
