"""The document's job store over gRPC, with a client made of the committed .proto files and plain grpcio."""

import importlib
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_tools import protoc
from proof.setups import Servers

from rushes.blobs.documents import read_document
from rushes.domain.job import JobCommand, NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.task import Draft, Failure, Finish
from rushes.domain.worker import Incarnation
from rushes.library import Library
from rushes.surfaces.rpc.server import RpcServer

ROOT = Path(__file__).resolve().parents[3]
SETUPS = ("sqlite", "postgres", "aws")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Client code as anybody makes it."""
    folder = tmp_path_factory.mktemp("client")
    files = [str(file) for file in (ROOT / "proto").rglob("*.proto")]
    options = [f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
    assert protoc.main(["", *options, *files]) == 0
    for file in folder.rglob("*_pb2_grpc.py"):  # the package is called as ours, which is installed
        file.write_text(file.read_text().replace("from rushes.v1 import", "import"))
    sys.path.insert(0, str(folder / "rushes" / "v1"))
    names = ("jobs_pb2", "events_pb2", "jobs_pb2_grpc", "events_pb2_grpc")
    return SimpleNamespace(**{name: importlib.import_module(name) for name in names})


class Client:
    """Stubs of one server."""

    def __init__(self, made: Any, library: Library, address: str) -> None:
        self.pb, self.events_pb, self.library = made.jobs_pb2, made.events_pb2, library
        self.channel = grpc.insecure_channel(address)
        self.jobs = made.jobs_pb2_grpc.JobServiceStub(self.channel)
        self.events = made.events_pb2_grpc.JobEventsServiceStub(self.channel)

    def enqueue(self, request: str, params: bytes = b"", queue: str = "default") -> Any:
        return self.jobs.Enqueue(self.pb.EnqueueRequest(queue=queue, request_id=request, params=params))

    def dequeue(self, n: int = 1, queue: str = "default", seconds: int = 60, wait: int = 0) -> list[Any]:
        asked = self.pb.DequeueRequest(queue=queue, max_jobs=n, visibility_timeout_seconds=seconds, wait_seconds=wait)
        return list(self.jobs.Dequeue(asked, timeout=60))

    def complete(self, taken: Any) -> Any:
        return self.jobs.Complete(self.pb.CompleteRequest(task_token=taken.task_token, job_id=taken.job.job_id))

    def listed(self, **asked: Any) -> list[str]:
        return [job.job_id for job in self.jobs.List(self.pb.ListRequest(queue="default", **asked)).jobs]


@pytest.fixture(scope="module", params=SETUPS)
def client(request: pytest.FixtureRequest, made: Any, all_servers: Servers, tmp_path_factory: Any) -> Iterator[Client]:
    setup = request.param
    home = tmp_path_factory.mktemp(f"grpc-{setup}") / "home"
    home.mkdir()
    (home / "rushes.toml").write_text(all_servers.settings(setup, f"grpc{setup}") + 'queues = "default, priority"\n')
    with Library(home) as library:
        server = RpcServer(library, "127.0.0.1:0")
        server.start()
        yield Client(made, library, f"127.0.0.1:{server.port}")
        server.stop()


def code_of(caught: Any) -> tuple[str, str]:
    """The status of a refusal, and the name of the error."""
    return caught.value.code().name, dict(caught.value.trailing_metadata())["rushes-code"]


def test_a_request_that_is_repeated_is_the_same_job(client: Client) -> None:
    """EnqueueJob: enqueuing again with the same `request_id` returns the same job: its id, creation time and state.

    Where: library/queues.py
    """
    first, again = client.enqueue("once", b"1"), client.enqueue("once", b"2")
    assert (first.job_id, first.created_at) == (again.job_id, again.created_at)
    assert first.state == client.pb.JOB_STATE_PENDING
    (taken,) = client.dequeue()
    assert (taken.job.params, taken.attempt) == (b"1", 1)
    assert client.complete(taken).state == client.pb.JOB_STATE_COMPLETED


def test_at_most_ten_jobs_come_and_each_once(client: Client) -> None:
    """DequeueJobs: a call returns at most 10 jobs and hides them from others; a completed job never comes back.

    Where: library/queues.py
    """
    ids = {client.enqueue(f"many{n}").job_id for n in range(12)}
    first, second = client.dequeue(25), client.dequeue(10)
    assert (len(first), len(second)) == (10, 2)
    assert {taken.job.job_id for taken in (*first, *second)} == ids
    for taken in (*first, *second):
        client.complete(taken)
    assert client.dequeue() == []


def test_a_job_comes_with_its_metadata(client: Client) -> None:
    """DequeueJobs: a job comes with its metadata; without a visibility timeout the default of 300 s applies.

    Where: surfaces/rpc/jobs.py, library/queues.py
    """
    asked = client.enqueue("described", b"1")
    (taken,) = client.jobs.Dequeue(client.pb.DequeueRequest(queue="default"), timeout=60)
    job = taken.job
    assert (job.job_id, job.queue, job.request_id, job.params) == (asked.job_id, "default", "described", b"1")
    assert (job.state, job.created_at) == (client.pb.JOB_STATE_RUNNING, asked.created_at)
    assert job.updated_at >= job.created_at
    ledger = client.library.home.ledger
    (task,) = ledger.tasks(job.job_id).rows
    (left,) = (worker.lease_left for worker in ledger.workers() if worker.incarnation.id == task.worker)
    assert 60 < left <= 300
    client.complete(taken)


def test_a_worker_waits_for_the_next_job(client: Client) -> None:
    """SQS queues, long polling: a call on an empty queue waits for the first job.

    Where: library/queues.py
    """
    timer = threading.Timer(0.3, lambda: client.enqueue("late", b"late"))
    timer.start()
    (taken,) = client.dequeue(wait=20)
    timer.join()
    client.complete(taken)
    assert taken.job.params == b"late"


def test_a_queue_that_is_not_configured_is_invalid(client: Client) -> None:
    """Error handling: an unknown queue is InvalidArgument.

    Where: surfaces/rpc/server.py
    """
    for call in (lambda: client.enqueue("x", queue="nowhere"), lambda: client.dequeue(queue="nowhere")):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert code_of(caught) == ("INVALID_ARGUMENT", "Refused")


def test_tokens_are_refused_each_with_its_code(client: Client) -> None:
    """Error handling: a forged token, or one for another job or queue, is InvalidArgument; a stale one is refused.

    Where: library/access/task_tokens.py, surfaces/rpc/server.py
    """
    client.enqueue("one")
    (taken,) = client.dequeue()
    token, other = taken.task_token, client.enqueue("other").job_id
    asked = {
        "ForgedToken": client.pb.CompleteRequest(task_token=token[:-2] + "xx", job_id=taken.job.job_id),
        "ForeignToken": client.pb.CompleteRequest(task_token=token, job_id=other),
    }
    for name, request in asked.items():
        with pytest.raises(grpc.RpcError) as caught:
            client.jobs.Complete(request)
        assert code_of(caught) == ("INVALID_ARGUMENT", name)
    with pytest.raises(grpc.RpcError) as caught:
        client.jobs.UpdateVisibility(
            client.pb.UpdateVisibilityRequest(task_token=token, queue="priority", visibility_timeout_seconds=9)
        )
    assert code_of(caught) == ("INVALID_ARGUMENT", "ForeignToken")
    client.complete(taken)
    with pytest.raises(grpc.RpcError) as caught:
        client.jobs.Fail(client.pb.FailRequest(task_token=token, message="too late"))
    assert code_of(caught) == ("FAILED_PRECONDITION", "StaleToken")
    client.complete(client.dequeue()[0])


def test_a_completion_can_be_repeated(client: Client) -> None:
    """CompleteJob: completing twice is harmless; the visibility of a finished job cannot be changed.

    Where: library/queues.py
    """
    client.enqueue("twice")
    (taken,) = client.dequeue()
    assert client.complete(taken).state == client.complete(taken).state == client.pb.JOB_STATE_COMPLETED
    with pytest.raises(grpc.RpcError) as caught:
        client.jobs.UpdateVisibility(
            client.pb.UpdateVisibilityRequest(task_token=taken.task_token, visibility_timeout_seconds=9)
        )
    assert code_of(caught) == ("FAILED_PRECONDITION", "StaleToken")


def test_what_is_given_back_comes_again_and_its_token_is_stale(client: Client) -> None:
    """At-least-once processing: a redelivered job has a new token, and the old token no longer works.

    Where: library/queues.py
    """
    client.enqueue("back")
    (first,) = client.dequeue()
    client.jobs.UpdateVisibility(
        client.pb.UpdateVisibilityRequest(task_token=first.task_token, queue="default", visibility_timeout_seconds=600)
    )
    client.jobs.GiveBack(client.pb.GiveBackRequest(task_token=first.task_token))
    (second,) = client.dequeue()
    assert (second.job.job_id, second.attempt) == (first.job.job_id, 2)
    with pytest.raises(grpc.RpcError) as caught:
        client.complete(first)
    assert code_of(caught) == ("FAILED_PRECONDITION", "StaleToken")
    client.complete(second)


def test_a_job_that_never_works_is_failed(client: Client) -> None:
    """Jobs table, state: COMPLETED and FAILED are final; a failed job is not handed out again.

    Where: library/queues.py
    """
    client.enqueue("broken")
    (taken,) = client.dequeue()
    failed = client.pb.FailRequest(task_token=taken.task_token, message="no such file", permanent=True)
    assert client.jobs.Fail(failed).state == client.pb.JOB_STATE_FAILED
    assert client.dequeue() == []
    assert client.listed(state=client.pb.JOB_STATE_FAILED) == [taken.job.job_id]


def test_jobs_are_listed_by_state_time_cursor_and_page(client: Client) -> None:
    """ListJobs: filters by queue and state; pages by `page` and `page_size`, or by cursor (future enhancements).

    Where: surfaces/rpc/jobs.py
    """
    ids = [client.enqueue(f"listed{n}").job_id for n in range(5)][::-1]
    pending = client.pb.JOB_STATE_PENDING
    assert client.listed(state=pending) == ids
    assert [client.listed(state=pending, page=n, page_size=2) for n in (1, 2, 3, 4)] == [ids[:2], ids[2:4], ids[4:], []]
    first = client.jobs.List(client.pb.ListRequest(queue="default", state=pending, page_size=2))
    assert client.listed(state=pending, page_size=2, cursor=first.cursor) == ids[2:4]
    newest = first.jobs[0].created_at
    assert ids[0] in client.listed(state=pending, created_from=newest)
    assert client.listed(state=pending, created_from=newest + 1) == []
    for taken in client.dequeue(5):
        client.complete(taken)


def test_jobs_of_all_queues_are_listed_without_footage(client: Client) -> None:
    """ListJobs: without a queue, the jobs of all queues are listed.

    Where: library/queues.py
    """
    _footage(client, "film")
    ids = [client.enqueue("urgent", queue="priority").job_id, client.enqueue("usual").job_id]
    pages, pending = list[str](), client.pb.JOB_STATE_PENDING
    for page in (1, 2):
        listed = client.jobs.List(client.pb.ListRequest(state=pending, page=page, page_size=1))
        pages += [job.job_id for job in listed.jobs]
    assert pages == ids[::-1]
    for queue in ("priority", "default"):
        client.complete(client.dequeue(queue=queue)[0])
    done = client.jobs.List(client.pb.ListRequest(state=client.pb.JOB_STATE_COMPLETED)).jobs
    assert [job.job_id for job in done[:2]] == ids[::-1], "the last to finish first"


def _footage(client: Client, name: str) -> Draft:
    """The first task of a job of footage, in a lane that no worker takes."""
    ledger, owner = client.library.home.ledger, client.library.home.owner
    job = job_id(owner, name)
    first = Draft(task_id(job, "probe", None), job, "probe", None, "{}", f"only-{name}")
    ledger.submit(NewJob(job, owner, name, "film.mp4", "toys", "{}"), first)
    return first


def _event(client: Client, n: int, type: str, data: bytes = b"") -> Any:
    return client.events_pb.JobEvent(sequence=n, type=f"JOB_EVENT_TYPE_{type}", data=data)


def test_events_are_kept_once_replayed_and_then_live(client: Client) -> None:
    """PublishEvents and StreamEvents: events keep the worker's numbers; repeats are ignored; replay, then live.

    Where: library/job_events/publishing.py, library/job_events/watching.py
    """
    job = client.enqueue("told").job_id
    (taken,) = client.dequeue()
    lines = [_event(client, n, "OUTPUT_DATA", b"line %d" % n) for n in range(2, 60)]
    first = [_event(client, 1, "PROCESS_START"), *lines]

    def publish(events: list[Any]) -> None:
        client.events.Publish(iter([client.events_pb.PublishRequest(task_token=taken.task_token, events=events)]))

    publish(first)
    publish(first[10:30])
    heard: list[int] = []
    stream = client.events.Stream(client.events_pb.StreamRequest(job_id=job, from_sequence=5), timeout=60)
    for told in stream:
        heard.append(told.event.sequence)
        assert told.event.timestamp > 0, "server time where the worker gave none"
        if told.event.sequence == 59:
            publish([_event(client, 60, "PROCESS_END")])
            client.complete(taken)
    assert heard == list(range(5, 61))
    ends = client.events_pb.StreamRequest(job_id=job, types=["JOB_EVENT_TYPE_PROCESS_END"])
    assert [told.event.sequence for told in client.events.Stream(ends, timeout=60)] == [60]
    late = client.events_pb.StreamRequest(job_id=job, from_timestamp=2**52)
    assert list(client.events.Stream(late, timeout=60)) == []
    with pytest.raises(grpc.RpcError) as caught:
        publish([_event(client, 61, "OUTPUT_DATA")])
    assert code_of(caught) == ("FAILED_PRECONDITION", "StaleToken")


def test_a_worker_may_number_its_events_from_zero(client: Client) -> None:
    """Event sequencing: sequences start at 0 or 1 for each job.

    Where: library/job_events/work_event.py, library/job_events/watching.py
    """
    job = client.enqueue("zero").job_id
    (taken,) = client.dequeue()

    def publish(*numbers: int) -> None:
        lines = [_event(client, n, "OUTPUT_DATA") for n in numbers]
        client.events.Publish(iter([client.events_pb.PublishRequest(task_token=taken.task_token, events=lines)]))

    publish(0, 1)
    publish(0, 1, 2)
    with pytest.raises(grpc.RpcError) as caught:
        publish(0, 0)
    assert code_of(caught) == ("INVALID_ARGUMENT", "Refused")
    client.complete(taken)
    told = list(client.events.Stream(client.events_pb.StreamRequest(job_id=job), timeout=60))
    assert [(one.event.sequence, one.truncated_before) for one in told] == [(0, 0), (1, 0), (2, 0)]


def test_a_stream_goes_on_at_another_server_when_its_own_is_gone(client: Client, made: Any) -> None:
    """StreamEvents, across instances: a reader who reconnects to another server misses nothing and sees nothing twice.

    Where: library/job_events/watching.py
    """
    job = client.enqueue("replicas").job_id
    (taken,) = client.dequeue()
    told = iter(range(1, 40))

    def publish(n: int) -> None:
        lines = [_event(client, next(told), "OUTPUT_DATA") for _ in range(n)]
        client.events.Publish(iter([client.events_pb.PublishRequest(task_token=taken.task_token, events=lines)]))

    publish(3)
    with Library(client.library.folder) as another:
        server = RpcServer(another, "127.0.0.1:0")
        server.start()
        replica = Client(made, another, f"127.0.0.1:{server.port}")
        heard: list[int] = []

        def read() -> None:
            for answer in replica.events.Stream(client.events_pb.StreamRequest(job_id=job), timeout=60):
                heard.append(answer.event.sequence)
                if len(heard) == 3:
                    publish(30)
                if len(heard) == 20:
                    server.stop()

        with pytest.raises(grpc.RpcError) as caught:
            read()
        assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        replica.channel.close()
    last = heard[-1]
    publish(6)
    client.complete(taken)
    asked = client.events_pb.StreamRequest(job_id=job, from_sequence=last + 1, from_attempt=taken.attempt)
    heard += [answer.event.sequence for answer in client.events.Stream(asked, timeout=60)]
    assert heard == list(range(1, 40))


def test_attempts_of_footage_are_streamed_like_those_of_others(client: Client) -> None:
    """StreamEvents: attempts of our own workers are ProcessStart, OutputData, ProcessEnd and ProcessError, too.

    Where: library/job_events/attempts.py
    """
    ledger, owner, worker = client.library.home.ledger, client.library.home.owner, "m.h.b.1"
    first = _footage(client, "footage")
    job, task = first.job, first.id
    ledger.renew(Incarnation(worker, "h", "b", 1, "1", (first.lane,), 1, owner=owner), {}, {})
    (lease,) = ledger.claim(worker, [first.lane], 1)
    ledger.log(task, lease.fence, 1, ["a line"])
    ledger.fail(worker, task, lease.fence, Failure("Crash", "it broke", "", ""), 0.0)
    ledger.sweep()
    (lease,) = ledger.claim(worker, [first.lane], 1)
    found = []
    for told in client.events.Stream(client.events_pb.StreamRequest(job_id=job), timeout=60):
        found.append((told.attempt, client.events_pb.JobEventType.Name(told.event.type)[15:], bool(told.number)))
        if found[-1][:2] == (2, "PROCESS_START"):
            ledger.log(task, lease.fence, 1, ["another line"])
            ledger.complete(worker, [Finish(task, lease.fence)])
    assert found == [
        (1, "PROCESS_START", False), (1, "OUTPUT_DATA", False), (1, "PROCESS_ERROR", True),
        (2, "PROCESS_START", False), (2, "OUTPUT_DATA", False), (2, "PROCESS_END", True),
    ]  # fmt: skip
    ledger.control(worker, JobCommand.LEAVE)


def test_large_parameters_and_results_go_to_object_storage(client: Client) -> None:
    """Large payload offloading: large parameters lie at `jobs/{job_id}/params.json`, read by a presigned URL on S3.

    Where: library/queue_documents.py
    """
    params, result = b"p" * 300_000, b"r" * 3_000_000
    job = client.enqueue("heavy", params).job_id
    assert client.enqueue("heavy", b"q" * 200_000).job_id == job, "the first one's parameters stay"
    assert read_document(client.library.home.blobs, f"jobs/{job}/params.json") == params
    (taken,) = client.dequeue()
    signs = client.library.settings.blobs.startswith("s3://")
    assert (bool(taken.job.params_url), bool(taken.job.params), taken.job.params_size) == (
        signs,
        not signs,
        len(params),
    )
    assert _read(taken.job.params_url, taken.job.params) == params
    asked = client.pb.CompleteRequest(task_token=taken.task_token, job_id=job, result=result)
    for _ in range(2):
        assert client.jobs.Complete(asked).state == client.pb.JOB_STATE_COMPLETED
    got = client.jobs.Get(client.pb.GetRequest(job_id=job))
    assert (got.job.state, got.job.params, got.job.params_size) == (client.pb.JOB_STATE_COMPLETED, b"", len(params))
    assert (_read(got.result_url, got.result), got.result_size) == (result, len(result))


def _read(address: str, data: bytes) -> bytes:
    if not address:
        return data
    with urllib.request.urlopen(address, timeout=60) as answer:
        return bytes(answer.read())


def test_a_small_result_comes_with_its_job_and_nobody_elses(client: Client) -> None:
    """JobResult: a completed job carries the result of the attempt that completed it, and of no other.

    Where: library/queue_documents.py, library/queues.py
    """
    job = client.enqueue("light", b"1").job_id
    (first,) = client.dequeue()
    client.jobs.GiveBack(client.pb.GiveBackRequest(task_token=first.task_token))
    (second,) = client.dequeue()
    with pytest.raises(grpc.RpcError) as caught:
        client.jobs.Complete(client.pb.CompleteRequest(task_token=first.task_token, job_id=job, result=b"zombie"))
    assert code_of(caught) == ("FAILED_PRECONDITION", "StaleToken")
    assert client.jobs.Get(client.pb.GetRequest(job_id=job)).result == b""
    client.jobs.Complete(client.pb.CompleteRequest(task_token=second.task_token, job_id=job, result=b"made"))
    got = client.jobs.Get(client.pb.GetRequest(job_id=job))
    assert (got.result, got.result_size, got.result_url, got.job.params) == (b"made", 4, "", b"1")


def test_events_of_a_job_that_is_not_there_are_not_found(client: Client) -> None:
    """Error handling: an unknown job is NotFound.

    Where: surfaces/rpc/server.py
    """
    with pytest.raises(grpc.RpcError) as caught:
        list(client.events.Stream(client.events_pb.StreamRequest(job_id="job_none"), timeout=60))
    assert code_of(caught) == ("NOT_FOUND", "NotFound")


def test_a_cancelled_job_is_no_longer_its_workers(client: Client) -> None:
    """Race conditions: a worker cannot complete a job that was cancelled in the meantime.

    Where: library/queues.py
    """
    job = client.enqueue("stopped").job_id
    (taken,) = client.dequeue()
    client.library.home.ledger.control(job, JobCommand.CANCEL)
    with pytest.raises(grpc.RpcError) as caught:
        client.complete(taken)
    assert code_of(caught) == ("FAILED_PRECONDITION", "StaleToken")


def test_any_server_takes_any_token(client: Client, made: Any) -> None:
    """Task token: self-contained, so any replica accepts it.

    Where: library/access/task_tokens.py
    """
    client.enqueue("replica")
    (taken,) = client.dequeue()
    with Library(client.library.folder) as another:
        server = RpcServer(another, "127.0.0.1:0")
        server.start()
        replica = Client(made, another, f"127.0.0.1:{server.port}")
        assert replica.complete(taken).state == client.pb.JOB_STATE_COMPLETED
        replica.channel.close()
        server.stop()


def test_another_owner_finds_nothing_of_ours(client: Client, made: Any) -> None:
    """Multi-tenancy: owners never see each other's jobs, queues, events or tokens, even with equal request ids.

    Where: library/queues.py, library/job_events/watching.py
    """
    job = client.enqueue("private", b"ours").job_id
    with Library(client.library.folder, options={"owner": ("bob", "the test")}) as another:
        server = RpcServer(another, "127.0.0.1:0")
        server.start()
        bob = Client(made, another, f"127.0.0.1:{server.port}")
        assert (bob.dequeue(), bob.listed()) == ([], [])
        assert bob.enqueue("private", b"bob's").job_id != job
        (taken,) = client.dequeue()
        assert (taken.job.job_id, taken.job.params) == (job, b"ours")
        told = bob.events_pb.PublishRequest(task_token=taken.task_token)
        with_token: tuple[Callable[[], Any], ...] = (
            lambda: bob.complete(taken),
            lambda: bob.jobs.Fail(bob.pb.FailRequest(task_token=taken.task_token, permanent=True)),
            lambda: bob.jobs.GiveBack(bob.pb.GiveBackRequest(task_token=taken.task_token)),
            lambda: bob.events.Publish(iter([told])),
        )
        for call in with_token:
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert code_of(caught) == ("INVALID_ARGUMENT", "ForgedToken")
        with pytest.raises(grpc.RpcError) as caught:
            next(bob.events.Stream(bob.events_pb.StreamRequest(job_id=job), timeout=60))
        assert code_of(caught) == ("NOT_FOUND", "NotFound")
        assert client.complete(taken).state == client.pb.JOB_STATE_COMPLETED
        bob.channel.close()
        server.stop()
