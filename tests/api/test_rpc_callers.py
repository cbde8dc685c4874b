"""Who is let in over gRPC without a token, and whoever is gone without a word."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import grpc
import pytest

from rushes.home import Home
from rushes.library import Library
from rushes.library.access.accounts import Accounts
from rushes.library.access.throttle import FREE
from rushes.metrics import PROCESS, text
from rushes.remote.generated import events_pb2
from rushes.remote.generated import jobs_pb2 as pb
from rushes.surfaces.rpc import access
from rushes.surfaces.rpc import server as rpc_server
from tests.api.kit import wait_for
from tests.api.test_rpc import STREAM, TIMEOUT, asked, dequeue, listed, listening, refusal
from tests.promql import scraped


def test_without_a_token_it_is_open_until_there_is_an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "OPEN_SECONDS", 0.0)
    with listening(tmp_path / "home") as address, Library(tmp_path / "home") as library:
        assert not listed(address).jobs
        Accounts(library.home).create("anna", "correct horse battery")
        assert refusal(listed, address) == "UNAUTHENTICATED"
        with grpc.insecure_channel(address) as channel:
            assert refusal(dequeue, channel) == "UNAUTHENTICATED"


def test_a_proxy_lets_nobody_in_without_a_token(tmp_path: Path) -> None:
    with listening(tmp_path / "home") as address, grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(
            "/rushes.v1.JobService/List", pb.ListRequest.SerializeToString, pb.ListResponse.FromString
        )
        forwarded = [("x-forwarded-for", "203.0.113.9")]
        assert refusal(call, pb.ListRequest(), metadata=forwarded, timeout=TIMEOUT) == "UNAUTHENTICATED"
        assert not call(pb.ListRequest(), timeout=TIMEOUT).jobs


def test_tokens_cannot_be_guessed_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def frozen(home: Home) -> Accounts:
        accounts = Accounts(home)
        accounts.token_tries.clock = lambda: 0.0
        return accounts

    monkeypatch.setattr(rpc_server, "Accounts", frozen)
    home = tmp_path / "home"
    with listening(home, token="right", proxy="127.0.0.1") as address, grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(
            "/rushes.v1.JobService/List", pb.ListRequest.SerializeToString, pb.ListResponse.FromString
        )

        def ask(token: str, place: str = "203.0.113.5") -> str:
            metadata = [("authorization", f"Bearer {token}"), ("x-forwarded-for", place)]
            try:
                return "" if call(pb.ListRequest(), metadata=metadata, timeout=TIMEOUT).jobs else "OK"
            except grpc.RpcError as e:
                return str(e.code().name)

        assert {ask("an old setting") for _ in range(20)} == {"UNAUTHENTICATED"}, "the same again is no guess"
        said = [ask(f"guess {n}") for n in range(FREE)]
        assert said == ["UNAUTHENTICATED"] * (FREE - 1) + ["RESOURCE_EXHAUSTED"]
        assert ask("right") == "RESOURCE_EXHAUSTED"
        assert ask("right", "203.0.113.6") == "OK"


def test_a_caller_that_vanished_holds_no_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soon = {
        "grpc.keepalive_time_ms": rpc_server.OPTIONS["grpc.keepalive_time_ms"] // 300,
        "grpc.http2.ping_timeout_ms": 200,
    }
    monkeypatch.setattr(rpc_server, "OPTIONS", rpc_server.OPTIONS | soon)
    with listening(tmp_path / "home") as address, vanishing(address) as (way, vanish):
        job = asked(address, "Enqueue", pb.EnqueueRequest(queue="default", request_id="x"), pb.EnqueueResponse).job_id
        with grpc.insecure_channel(way) as channel:
            follow = channel.unary_stream(
                STREAM, events_pb2.StreamRequest.SerializeToString, events_pb2.StreamResponse.FromString
            )
            stream = follow(events_pb2.StreamRequest(job_id=job), timeout=30 * TIMEOUT)
            wait_for(lambda: open_streams() == 1, "it never came")
            vanish()
            wait_for(lambda: open_streams() == 0, "it is still waited for")
            stream.cancel()


def open_streams() -> float:
    return sum(scraped(text(PROCESS.families())).get("rushes_streams_active", {}).values())


@contextmanager
def vanishing(address: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """A way to a server on which, from some moment on, nothing comes through and nothing is closed."""
    host, _, port = address.rpartition(":")
    gone = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:

        def pass_on(source: socket.socket, target: socket.socket) -> None:
            with suppress(OSError):
                while (data := source.recv(65536)) and not gone.is_set():
                    target.sendall(data)

        def accept() -> None:
            with suppress(OSError):
                near = stack.enter_context(listener.accept()[0])
                far = stack.enter_context(socket.create_connection((host, int(port))))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=pass_on, args=ends, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", gone.set
