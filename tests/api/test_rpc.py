"""gRPC as operators put it on a network: TLS, certificates of callers, health, reflection, deadlines and sizes."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from rushes.domain.errors import NotFound, Refused, RushesError, StoreAway, Throttled
from rushes.library import Library
from rushes.library.access.task_tokens import TokenKeys
from rushes.library.queues import Queues
from rushes.remote.generated import events_pb2
from rushes.remote.generated import jobs_pb2 as pb
from rushes.surfaces.cli.main import main
from rushes.surfaces.rpc import jobs
from rushes.surfaces.rpc import server as rpc_server
from rushes.surfaces.rpc.limits import LASTING, CallLimit
from rushes.surfaces.rpc.server import RpcServer
from tests.api.kit import wait_for

TIMEOUT = 60.0
STREAM = "/rushes.v1.JobEventsService/Stream"
P256 = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


@dataclass(frozen=True)
class Authority:
    """Signs certificates, in a folder."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    def signed(self, name: str) -> tuple[Path, Path]:
        """A certificate for this machine, and its key."""
        cert, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        _openssl("req", "-x509", *P256, "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                 "-addext", "basicConstraints=critical,CA:FALSE", "-CA", self.ca, "-CAkey", self.folder / "ca.key",
                 "-keyout", key, "-out", cert)  # fmt: skip
        return cert, key


def _openssl(*args: str | Path) -> None:
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


def authority(folder: Path) -> Authority:
    folder.mkdir()
    _openssl("req", "-x509", *P256, "-subj", "/CN=ca", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    return Authority(folder)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("ca") / "ours")


@contextmanager
def listening(home: Path, **settings: str) -> Iterator[str]:
    options = {name: (value, "the test") for name, value in {"queues": "default", **settings}.items()}
    with Library(home, options=options) as library:
        server = RpcServer(library, "127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{server.port}"
        finally:
            server.stop()


def tls(ca: Path, cert: Path | None = None, key: Path | None = None) -> Any:
    return grpc.ssl_channel_credentials(
        ca.read_bytes(), key.read_bytes() if key else None, cert.read_bytes() if cert else None
    )


def listed(address: str, credentials: Any = None, token: str = "", **about: Any) -> Any:
    """The answer to List, over a connection of its own."""
    return asked(address, "List", pb.ListRequest(queue="default"), pb.ListResponse, credentials, token, **about)


def asked(address: str, method: str, request: Any, answer: Any, credentials: Any = None, token: str = "") -> Any:
    channel = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
    with channel:
        call = channel.unary_unary(
            f"/rushes.v1.JobService/{method}", type(request).SerializeToString, answer.FromString
        )
        metadata = [("authorization", f"Bearer {token}")] if token else []
        return call(request, timeout=TIMEOUT, metadata=metadata, wait_for_ready=False)


def dequeue(channel: Any, **about: int) -> list[Any]:
    method = "/rushes.v1.JobService/Dequeue"
    call = channel.unary_stream(method, pb.DequeueRequest.SerializeToString, pb.DequeueResponse.FromString)
    ask = pb.DequeueRequest(queue="default", max_jobs=1, visibility_timeout_seconds=60, **about)
    return list(call(ask, timeout=TIMEOUT))


def refusal(call: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, **named)
    return str(caught.value.code().name)


def test_with_a_certificate_it_speaks_tls_alone(tmp_path: Path, ours: Authority) -> None:
    cert, key = ours.signed("server")
    with listening(tmp_path / "home", grpc_cert=str(cert), grpc_key=str(key)) as address:
        assert not listed(address, tls(ours.ca)).jobs
        assert refusal(listed, address) == "UNAVAILABLE"
        foreign = authority(tmp_path / "foreign")
        assert refusal(listed, address, tls(foreign.ca)) == "UNAVAILABLE"


def test_with_an_authority_callers_need_its_certificate(tmp_path: Path, ours: Authority) -> None:
    cert, key = ours.signed("server")
    files = {"grpc_cert": str(cert), "grpc_key": str(key), "grpc_ca": str(ours.ca)}
    foreign = authority(tmp_path / "foreign")
    with listening(tmp_path / "home", **files) as address:
        assert not listed(address, tls(ours.ca, *ours.signed("client"))).jobs
        assert refusal(listed, address, tls(ours.ca)) == "UNAVAILABLE"
        assert refusal(listed, address, tls(ours.ca, *foreign.signed("client"))) == "UNAVAILABLE"


def test_a_certificate_that_was_renewed_is_used_without_a_restart(tmp_path: Path, ours: Authority) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    old, new = ours, authority(tmp_path / "new")
    for file, signed in zip((cert, key), old.signed("server"), strict=True):
        file.write_bytes(signed.read_bytes())
    with listening(tmp_path / "home", grpc_cert=str(cert), grpc_key=str(key)) as address:
        assert not listed(address, tls(old.ca)).jobs
        for file, signed in zip((cert, key), new.signed("server"), strict=True):
            file.write_bytes(signed.read_bytes())
        assert not listed(address, tls(new.ca)).jobs
        assert refusal(listed, address, tls(old.ca)) == "UNAVAILABLE"


@pytest.mark.parametrize("files", [{"grpc_cert": "/none.pem", "grpc_key": "/none.key"}, {"grpc_cert": "/none.pem"}])
def test_a_certificate_that_cannot_be_read_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(Refused), listening(tmp_path / "home", **files):
        pass


def test_health_needs_no_token_and_everything_else_does(tmp_path: Path) -> None:
    with listening(tmp_path / "home", token="secret") as address, grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "rushes.v1.JobService", "rushes.v1.JobEventsService"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=TIMEOUT)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert refusal(listed, address) == "UNAUTHENTICATED"
        assert refusal(listed, address, token="other") == "UNAUTHENTICATED"
        assert not listed(address, token="secret").jobs
        ask = reflection_pb2.ServerReflectionRequest(list_services="")
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        assert refusal(lambda: list(stub.ServerReflectionInfo(iter([ask]), timeout=TIMEOUT))) == "UNAUTHENTICATED"


def test_reflection_tells_the_services(tmp_path: Path) -> None:
    with listening(tmp_path / "home") as address, grpc.insecure_channel(address) as channel:
        ask = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([ask]), timeout=TIMEOUT)
    told = {service.name for service in answer.list_services_response.service}
    assert {"rushes.v1.JobService", "rushes.v1.JobEventsService", "grpc.health.v1.Health"} <= told


def test_a_long_poll_answers_before_its_callers_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ANSWER_SECONDS", TIMEOUT - 0.5)  # as if half a second were left to wait
    with listening(tmp_path / "home") as address, grpc.insecure_channel(address) as channel:
        assert dequeue(channel, wait_seconds=20) == []


def test_watchers_lock_neither_workers_nor_probes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_server, "CallLimit", partial(CallLimit, lasting=dict.fromkeys(LASTING, 2)))
    with listening(tmp_path / "home") as address, grpc.insecure_channel(address) as channel:
        watched = pb.EnqueueRequest(queue="default", request_id="watched")
        job = asked(address, "Enqueue", watched, pb.EnqueueResponse).job_id
        (taken,) = dequeue(channel)
        told = events_pb2.JobEvent(sequence=1, type=events_pb2.JOB_EVENT_TYPE_PROCESS_START)
        publish = channel.stream_unary(
            "/rushes.v1.JobEventsService/Publish", events_pb2.PublishRequest.SerializeToString,
            events_pb2.PublishResponse.FromString,
        )  # fmt: skip
        publish(iter([events_pb2.PublishRequest(task_token=taken.task_token, events=[told])]), timeout=TIMEOUT)
        follow = channel.unary_stream(
            STREAM, events_pb2.StreamRequest.SerializeToString, events_pb2.StreamResponse.FromString
        )
        watching = [follow(events_pb2.StreamRequest(job_id=job), timeout=TIMEOUT) for _ in range(2)]
        assert [next(one).event.sequence for one in watching] == [1, 1]
        assert refusal(next, follow(events_pb2.StreamRequest(job_id=job), timeout=TIMEOUT)) == "RESOURCE_EXHAUSTED"
        assert [found.job_id for found in listed(address).jobs] == [job]
        watching[0].cancel()
        wait_for(lambda: is_answered(follow(events_pb2.StreamRequest(job_id=job), timeout=TIMEOUT)), "it never left")
        watching[1].cancel()


def test_probes_are_answered_where_every_other_call_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_server, "CallLimit", partial(CallLimit, 0))
    with listening(tmp_path / "home") as address, grpc.insecure_channel(address) as channel:
        assert refusal(listed, address) == "RESOURCE_EXHAUSTED"
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def is_answered(stream: Any) -> bool:
    """Whether a stream is let in; it is given up again."""
    try:
        return bool(next(stream))
    except grpc.RpcError:
        return False
    finally:
        stream.cancel()


@pytest.mark.parametrize(("size", "code"), [(5 * 2**20, "RESOURCE_EXHAUSTED"), (3 * 2**20 + 1, "INVALID_ARGUMENT")])
def test_a_message_that_is_too_large_is_refused(tmp_path: Path, size: int, code: str) -> None:
    ask = pb.EnqueueRequest(queue="default", request_id="large", params=b"x" * size)
    with listening(tmp_path / "home") as address:
        assert refusal(asked, address, "Enqueue", ask, pb.EnqueueResponse) == code
        assert not listed(address).jobs


@pytest.mark.parametrize(
    ("error", "code", "named"),
    [
        (Throttled("too many requests"), "RESOURCE_EXHAUSTED", "Throttled"),
        (StoreAway("it does not answer"), "UNAVAILABLE", "StoreAway"),
        (NotFound("no such job"), "NOT_FOUND", "NotFound"),
        (RushesError("a bug"), "INTERNAL", "RushesError"),
        (RuntimeError("a secret"), "INTERNAL", None),
    ],
)
def test_each_fault_has_its_code_and_a_bug_tells_nothing_of_its_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, named: str | None
) -> None:
    def fail(*_args: Any, **_named: Any) -> Any:
        raise error

    for method in ("page", "dequeue"):
        monkeypatch.setattr(Queues, method, fail)
    with listening(tmp_path / "home") as address, grpc.insecure_channel(address) as channel:
        for call in (lambda: listed(address), lambda: dequeue(channel)):
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code().name == code
            assert dict(caught.value.trailing_metadata()).get("rushes-code") == named
            assert "secret" not in str(caught.value.details())
            assert "rushes jobs" not in str(caught.value.details()), "programs have no command line"


def test_tokens_are_changed_by_the_command_and_an_expired_one_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"

    def completed(taken: Any) -> str:
        ask = pb.CompleteRequest(task_token=taken.task_token, job_id=taken.job.job_id)
        try:
            return str(pb.JobState.Name(asked(address, "Complete", ask, pb.CompleteResponse).state))
        except grpc.RpcError as e:
            return f"{e.code().name} {dict(e.trailing_metadata())['rushes-code']}"

    with listening(home) as address, grpc.insecure_channel(address) as channel:
        for id in ("one", "two", "three"):
            asked(address, "Enqueue", pb.EnqueueRequest(queue="default", request_id=id), pb.EnqueueResponse)
        (first,), (second,) = dequeue(channel), dequeue(channel)
        assert CliRunner().invoke(main, ["--home", str(home), "tokens", "rotate"]).exit_code == 0
        (third,) = dequeue(channel)
        assert completed(first) == "JOB_STATE_COMPLETED", "the key before is still accepted"
        assert CliRunner().invoke(main, ["--home", str(home), "tokens", "rotate"]).exit_code == 0
        assert completed(second) == "INVALID_ARGUMENT ForgedToken"
        monkeypatch.setattr(TokenKeys, "signer", _of_tomorrow(TokenKeys.signer))
        assert completed(third) == "INVALID_ARGUMENT ExpiredToken"


def _of_tomorrow(signer: Any) -> Any:
    return lambda keys: replace(signer(keys), clock=lambda: time.time() + 86_401)


def test_a_call_whose_deadline_passed_before_its_turn_is_not_carried_out() -> None:
    told: list[Any] = []
    context: Any = SimpleNamespace(is_active=lambda: False, abort=lambda *why: told.append(why[0]))
    rpc_server._answer(lambda _request, _context: told.append("carried out"), None, context)
    assert told == [grpc.StatusCode.DEADLINE_EXCEEDED]


@pytest.mark.parametrize("ask", [{"created_from": 2**62}, {"created_to": 2**62}, {"cursor": "garbage"}, {"state": 77}])
def test_a_list_that_cannot_be_read_is_an_invalid_argument(tmp_path: Path, ask: dict[str, Any]) -> None:
    with listening(tmp_path / "home") as address:
        assert refusal(asked, address, "List", pb.ListRequest(queue="default", **ask), pb.ListResponse) == (
            "INVALID_ARGUMENT"
        )


def test_a_cursor_goes_on_in_its_own_list_alone(tmp_path: Path) -> None:
    with listening(tmp_path / "home") as address:
        made = [
            asked(address, "Enqueue", pb.EnqueueRequest(queue="default", request_id=id), pb.EnqueueResponse).job_id
            for id in ("one", "two")
        ]
        page = asked(address, "List", pb.ListRequest(queue="default", page_size=1), pb.ListResponse)
        more = pb.ListRequest(queue="default", page_size=1, cursor=page.cursor)
        found = [*page.jobs, *asked(address, "List", more, pb.ListResponse).jobs]
        assert [job.job_id for job in found] == made[::-1]
        other = pb.ListRequest(queue="default", cursor=page.cursor, state=pb.JOB_STATE_FAILED)
        assert refusal(asked, address, "List", other, pb.ListResponse) == "INVALID_ARGUMENT"
