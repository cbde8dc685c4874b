"""gRPC behind a real nginx, with the configuration that operators copy: for remote workers and for programs."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import grpc
import pytest
from attempt_kit import ME, RESULT, WORKER, home_in, remote_attempt
from tests.api.kit import wait_for
from tests.api.test_rpc import authority, listed, listening, refusal

from rushes.domain.keys import manifest_key
from rushes.domain.result import Artifact
from rushes.domain.task import Finish, LeaseStatus, Verdict
from rushes.ledger.remote import RemoteLedger
from rushes.library import Library
from rushes.remote.client import ServerAddress
from rushes.remote.event_log import EventLog
from rushes.remote.generated import events_pb2, jobs_pb2
from rushes.surfaces.rpc.server import RpcServer
from rushes.transport.remote import RemoteHints

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin") or str(Path(sys.prefix) / "nginx" / "usr" / "sbin" / "nginx")
SITE = Path(__file__).resolve().parents[2] / "infra" / "systemd" / "rushes-grpc.nginx.conf"

LARGE = bytes(range(256)) * 12_000  # 3 MB: more than a message, and than nginx takes unless it is told
TOKEN = "a-token-of-the-test"
BEARER = [("authorization", f"Bearer {TOKEN}")]
pytestmark = pytest.mark.skipif(not Path(NGINX).exists(), reason="scripts/test fetches nginx")


@contextmanager
def behind_nginx(folder: Path, address: str) -> Iterator[ServerAddress]:
    """By TLS and HTTP/2 of a real nginx, with the configuration that operators copy."""
    folder.mkdir()
    cert, key = authority(folder / "ca").signed("proxy")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    site = SITE.read_text().replace("127.0.0.1:50051", address).replace("listen 50443", f"listen 127.0.0.1:{port}")
    for name, file in (("certs/rushes.example.org.pem", cert), ("private/rushes.example.org.key", key)):
        site = site.replace(f"/etc/ssl/{name}", str(file))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    config = folder / "nginx.conf"
    config.write_text(f"pid {folder}/pid; events {{}} http {{ access_log off; {temporary} {site} }}")
    argv = [NGINX, "-p", str(folder), "-c", str(config), "-e", str(folder / "errors"), "-g", "daemon off;"]
    with subprocess.Popen(argv) as process:
        try:
            wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text() != "", "nginx never listened")
            yield ServerAddress(f"grpcs://127.0.0.1:{port}", "", str(folder / "ca" / "ca.pem"))
        finally:
            process.terminate()


def test_a_worker_behind_a_proxy_does_all_that_one_does(tmp_path: Path) -> None:
    with ExitStack() as stack:
        open_attempt = remote_attempt(home_in(tmp_path), partial(behind_nginx, tmp_path / "nginx"), stack)
        world = open_attempt([b"small", LARGE])
        assert world.lease
        assert world.server
        assert world.blobs.local(ME, world.inputs[1]).read_bytes() == LARGE
        made = world.blobs.put(ME, LARGE[::-1])
        assert world.blobs.create(
            manifest_key(ME, RESULT), world.manifest(Artifact("a", made.sha256, made.size, "x/y"))
        )
        ledger, lease = RemoteLedger(world.server), world.lease
        ledger.log(lease.task, lease.fence, 1, ["a line"])
        kept = ledger.renew(WORKER, {lease.task: lease.fence}, {lease.task: 0.5}).leases
        assert kept == {lease.task: LeaseStatus.KEEP}
        assert ledger.complete(WORKER.id, [Finish(lease.task, lease.fence)]).verdicts == (Verdict.OK,)
        assert RemoteHints(world.server).wait(["cpu"], 0.1) == ()


def test_a_program_behind_a_proxy_takes_tells_and_completes(tmp_path: Path) -> None:
    with ExitStack() as stack:
        options = {"queues": ("default", "the test"), "token": (TOKEN, "the test")}
        library = stack.enter_context(Library(tmp_path / "home", options=options))
        server = RpcServer(library, "127.0.0.1:0")
        server.start()
        stack.callback(server.stop)
        address = stack.enter_context(behind_nginx(tmp_path / "nginx", f"127.0.0.1:{server.port}"))
        channel = stack.enter_context(address.channels()[0])
        library.queues.enqueue("default", "one", b"params")
        take = channel.unary_stream(
            "/rushes.v1.JobService/Dequeue", jobs_pb2.DequeueRequest.SerializeToString,
            jobs_pb2.DequeueResponse.FromString,
        )  # fmt: skip
        ask = jobs_pb2.DequeueRequest(queue="default", max_jobs=2, visibility_timeout_seconds=60, wait_seconds=20)
        (taken,) = list(take(ask, timeout=60, metadata=BEARER))
        follow = channel.unary_stream(
            "/rushes.v1.JobEventsService/Stream", events_pb2.StreamRequest.SerializeToString,
            events_pb2.StreamResponse.FromString,
        )  # fmt: skip
        stream = follow(events_pb2.StreamRequest(job_id=taken.job.job_id), timeout=60, metadata=BEARER)
        with EventLog(channel, taken.task_token, tmp_path / "events", BEARER) as log:
            log.start()
            assert next(stream).event.sequence == 1, "told at once, not when the stream ends"
            log.end()
        library.queues.complete(taken.task_token, taken.job.job_id)
        assert [told.event.sequence for told in stream] == [2]
        with pytest.raises(grpc.RpcError) as caught:
            list(take(jobs_pb2.DequeueRequest(queue="nowhere"), timeout=60, metadata=BEARER))
        assert dict(caught.value.trailing_metadata())["rushes-code"] == "Refused", "trailers pass as well"


def test_a_proxy_in_front_of_a_server_without_a_token_lets_nobody_in(tmp_path: Path) -> None:
    with listening(tmp_path / "home") as address, behind_nginx(tmp_path / "nginx", address) as proxy:
        with proxy.channels()[0] as channel:
            call = channel.unary_unary(
                "/rushes.v1.JobService/List", jobs_pb2.ListRequest.SerializeToString, jobs_pb2.ListResponse.FromString
            )
            assert refusal(call, jobs_pb2.ListRequest(), timeout=60) == "UNAUTHENTICATED"
        assert not listed(address).jobs
