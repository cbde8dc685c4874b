"""A worker token reaches what its worker leases, and nothing else; whatever a worker claims about itself."""

import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rushes.blobs.local_cache import LocalCache
from rushes.blobs.remote import RemoteBlobs
from rushes.domain.errors import (
    DamagedBlob,
    ForeignToken,
    ForgedToken,
    LeaseLost,
    NeverWorks,
    NotAllowed,
    NotFound,
    Refused,
    SourceChanged,
    StoreAway,
)
from rushes.domain.job import JobCommand, JobState, NewJob
from rushes.domain.keys import job_id, manifest_key, task_id
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.domain.task import Draft, Failure, Finish, Lease, LeaseStatus, TaskState, Verdict
from rushes.domain.video import Fingerprint
from rushes.domain.worker import Incarnation, queue_lane
from rushes.ledger import remote
from rushes.ledger.remote import RemoteLedger
from rushes.library import Library
from rushes.library.access import worker_tokens
from rushes.library.access.worker_tokens import WorkerTokens
from rushes.library.remote_work.leases import RemoteLeases
from rushes.remote import client
from rushes.remote.client import RemoteServer, ServerAddress, patiently
from rushes.remote.generated import workers_pb2 as pb
from rushes.sources.remote import RemoteFilm
from rushes.surfaces.cli.main import main
from rushes.surfaces.rpc.server import RpcServer
from tests.api.test_rpc import authority

ME = Incarnation("m.h.b.1", "elsewhere", "boot", 1, "1", ("cpu",), 1, "m", "0")


@dataclass
class Site:
    """A server, its library, and a worker that has only a token."""

    library: Library
    folder: Path
    address: str

    def server(self, token: str) -> RemoteServer:
        return RemoteServer(ServerAddress(f"grpc://{self.address}", token))

    def submit(
        self, name: str, inputs: dict[str, list[str]] | None = None, source: Any = None, lane: str = "cpu"
    ) -> str:
        job = job_id("me", name)
        spec = {"owner": "me", "results": {"out": f"key-{name}"}, "inputs": inputs or {}, "source": source}
        task = task_id(job, "toy", None)
        first = Draft(task, job, "toy", None, json.dumps(spec), lane)
        self.library.home.ledger.submit(NewJob(job, "me", name, name, "toys", "{}"), first)
        return task

    def result(self, name: str, data: bytes) -> str:
        """A result of somebody that is there; the hash of its only blob."""
        blob = self.library.home.blobs.put("me", data)
        manifest = Manifest(f"key-{name}", "out", (Artifact("a", blob.sha256, blob.size, "x/y"),), origin("job", 1))
        self.library.home.blobs.create(manifest_key("me", f"key-{name}"), manifest.to_bytes())
        return blob.sha256


def origin(job: str, fence: int) -> Provenance:
    return Provenance(job, "toy", "rushes.toy", "0/1", "", "", "", fence)


@contextmanager
def serving(home: Path) -> Iterator[Site]:
    options = {"queues": ("default", "the test")}
    with Library(home, options=options) as library:
        server = RpcServer(library, "127.0.0.1:0")
        server.start()
        try:
            yield Site(library, home.parent, f"127.0.0.1:{server.port}")
        finally:
            server.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path / "home") as found:
        yield found


@pytest.fixture
def server(site: Site) -> Iterator[RemoteServer]:
    opened = site.server(WorkerTokens(site.library.home).create("one"))
    yield opened
    opened.close()


@pytest.fixture
def ledger(server: RemoteServer) -> RemoteLedger:
    entered = RemoteLedger(server)
    entered.renew(ME, {}, {})
    return entered


def files(site: Site, server: RemoteServer, lease: Lease) -> RemoteBlobs:
    return RemoteBlobs(server, LocalCache(site.folder / "copies", 1 << 30), server.token(lease.task, lease.fence))


def taken(ledger: RemoteLedger) -> Lease:
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    return lease


@pytest.mark.parametrize("token", ["", "one", "one.wrong", "two.x", "../one.x", "one.\x7f", "é.x"])
def test_without_a_worker_token_nothing_is_told(site: Site, token: str) -> None:
    WorkerTokens(site.library.home).create("one")
    with pytest.raises((NotAllowed, Refused, ValueError)):
        RemoteLedger(site.server(token))


def test_what_a_server_refuses_is_told_with_what_to_do(site: Site) -> None:
    with pytest.raises(NotAllowed) as wrong:
        RemoteLedger(site.server("one.wrong"))
    assert str(wrong.value) == "this is not a worker token of this server"
    assert wrong.value.advice == "Make one: rushes tokens worker NAME"
    with pytest.raises(StoreAway) as away:
        RemoteLedger(RemoteServer(ServerAddress("grpc://127.0.0.1:9", "one.token")))
    assert "rushes serve --grpc" in away.value.advice


def test_a_token_that_was_revoked_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_tokens, "KNOWN_SECONDS", 0.0)
    tokens = WorkerTokens(site.library.home)
    server = site.server(tokens.create("one"))
    RemoteLedger(server)
    tokens.revoke("one")
    with pytest.raises(NotAllowed):
        RemoteLedger(server)
    with pytest.raises(NotFound):
        tokens.revoke("one")
    server.close()


def test_a_task_is_taken_worked_on_and_done(site: Site, server: RemoteServer, ledger: RemoteLedger) -> None:
    task, data = site.submit("film", {"a": ["key-input"]}), b"input" * 300_000
    sha256 = site.result("input", data)
    lease = taken(ledger)
    blobs = files(site, server, lease)
    assert blobs.local("me", sha256).read_bytes() == data
    found = blobs.read(manifest_key("me", "key-input"))
    assert found
    assert json.loads(found.data)["key"] == "key-input"
    assert blobs.adopt("me", "key-film") is None
    made = blobs.put("me", io.BytesIO(b"made" * 500_000).read())
    manifest = Manifest(
        "key-film", "out", (Artifact("a", made.sha256, made.size, "x/y"),), origin(lease.job, lease.fence)
    )
    assert blobs.create(manifest_key("me", "key-film"), manifest.to_bytes())
    assert not blobs.create(manifest_key("me", "key-film"), manifest.to_bytes()), "the first writer wins"
    adopted = blobs.adopt("me", "key-film")
    assert adopted
    assert adopted.size == made.size
    assert ledger.renew(ME, {task: lease.fence}, {task: 0.5}).leases == {task: LeaseStatus.KEEP}
    ledger.log(task, lease.fence, 1, ["a line"])
    finish = Finish(task, lease.fence)
    assert ledger.complete(ME.id, [finish, finish]).verdicts == (Verdict.OK, Verdict.OK)
    (row,) = site.library.home.ledger.tasks(ids=[task]).rows
    assert row.state is TaskState.DONE
    assert site.library.home.ledger.known("me", ["key-film"])["key-film"].manifest_sha256


def test_a_task_is_not_done_before_its_results_are_there(site: Site, ledger: RemoteLedger) -> None:
    site.submit("film")
    lease = taken(ledger)
    with pytest.raises(DamagedBlob):
        ledger.complete(ME.id, [Finish(lease.task, lease.fence)])


def test_only_the_inputs_and_results_of_its_task_are_reached(
    site: Site, server: RemoteServer, ledger: RemoteLedger
) -> None:
    site.submit("film", {"a": ["key-input"]})
    site.result("input", b"input")
    secret = site.result("secret", b"secret")
    blobs = files(site, server, taken(ledger))
    for reach in (
        lambda: blobs.local("me", secret),
        lambda: blobs.read(manifest_key("me", "key-secret")),
        lambda: blobs.adopt("me", "key-secret"),
        lambda: blobs.create(manifest_key("me", "key-other"), b"{}"),
        lambda: blobs.local("me", "../../ledger.sqlite"),
    ):
        with pytest.raises(NeverWorks):
            reach()


@pytest.mark.parametrize(
    "change",
    [
        {"key": "key-other"},
        {"output": "other"},
        {"artifacts": (Artifact("a", "0" * 64, 1, "x/y"),)},
        {"artifacts": (Artifact("a", hashlib.sha256(b"made").hexdigest(), 5, "x/y"),)},
        {"artifacts": (Artifact("a", hashlib.sha256(b"made").hexdigest(), 4, "x/y", "videos/proxy/other/x"),)},
        {"facts": {"source": {"path": "/etc/passwd"}}},
        {"provenance": origin("job_other", 1)},
        {"provenance": replace(origin("job", 1), stage="other")},
    ],
)
def test_a_manifest_that_the_task_could_not_make_is_refused(
    site: Site, server: RemoteServer, ledger: RemoteLedger, change: dict[str, Any]
) -> None:
    site.submit("film")
    lease = taken(ledger)
    blobs = files(site, server, lease)
    made = blobs.put("me", b"made")
    right = Manifest("key-film", "out", (Artifact("a", made.sha256, 4, "x/y"),), origin(lease.job, lease.fence))
    with pytest.raises((NeverWorks, DamagedBlob)):
        blobs.create(manifest_key("me", "key-film"), replace(right, **change).to_bytes())
    with pytest.raises(NeverWorks):
        blobs.create(manifest_key("me", "key-film"), right.to_bytes() + b" ")
    assert site.library.home.blobs.read(manifest_key("me", "key-film")) is None


def test_other_bytes_than_were_announced_are_not_stored(site: Site, server: RemoteServer, ledger: RemoteLedger) -> None:
    site.submit("film")
    lease = taken(ledger)
    token, wanted = server.token(lease.task, lease.fence), hashlib.sha256(b"right").hexdigest()
    for size, data in ((5, b"wrong"), (4, b"right"), (9, b"right"), (1 << 60, b"right")):
        head = pb.WriteBlobRequest(task_token=token, sha256=wanted, size=size)
        with pytest.raises(NeverWorks):
            server.write("WriteBlob", [head, pb.WriteBlobRequest(data=data)])
    assert site.library.home.blobs.stat("me", wanted) is None


def test_who_lost_the_lease_writes_nothing(site: Site, server: RemoteServer, ledger: RemoteLedger) -> None:
    """A zombie: its task was released and given to somebody else, who is still at it."""
    task = site.submit("film", {"a": ["key-input"]})
    sha256 = site.result("input", b"input")
    old = taken(ledger)
    blobs = files(site, server, old)
    ledger.give_back(ME.id, [(task, old.fence)], "frozen")
    new = taken(ledger)
    manifest = Manifest("key-film", "out", (), origin(old.job, old.fence))
    for reach in (
        lambda: blobs.put("me", b"late"),
        lambda: blobs.local("me", sha256),
        lambda: blobs.create(manifest_key("me", "key-film"), manifest.to_bytes()),
    ):
        with pytest.raises(LeaseLost):
            reach()
    assert ledger.renew(ME, {task: old.fence}, {}).leases == {task: LeaseStatus.LOST}
    assert ledger.complete(ME.id, [Finish(task, old.fence)]).verdicts == (Verdict.LOST,)
    (row,) = site.library.home.ledger.tasks(ids=[task]).rows
    assert (row.state, row.fence) == (TaskState.LEASED, new.fence)


def test_a_claim_whose_answer_was_lost_is_answered_again(
    site: Site, ledger: RemoteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker lives, so that nobody else would ever get the task."""
    held, lost = site.submit("held"), site.submit("lost")
    assert taken(ledger).task == held
    claim = RemoteLeases.claim

    def unheard(leases: RemoteLeases, *asked: Any, **more: Any) -> None:
        claim(leases, *asked, **more)
        raise StoreAway("it was killed before it answered")

    with monkeypatch.context() as outage:
        outage.setattr(RemoteLeases, "claim", unheard)
        with pytest.raises(StoreAway):
            taken(ledger)
    late = site.submit("late")
    found = ledger.claim(ME.id, ["cpu"], 1)
    assert [lease.task for lease in found] == [lost, late]
    assert ledger.claim(ME.id, ["cpu"], 1) == (), "in doubt still, but all that it holds is known"
    assert ledger.renew(ME, {lost: found[0].fence}, {}).leases == {lost: LeaseStatus.KEEP}
    monkeypatch.setattr(remote, "DOUBT_SECONDS", 0.0)
    with monkeypatch.context() as outage:
        outage.setattr(RemoteLeases, "claim", unheard)
        with pytest.raises(StoreAway):
            taken(ledger)
    ledger.claim(ME.id, ["cpu"], 1)
    assert not ledger._doubt_until


def test_a_worker_cannot_speak_for_one_with_another_token(
    site: Site, server: RemoteServer, ledger: RemoteLedger
) -> None:
    task = site.submit("film")
    lease = taken(ledger)
    other = site.server(WorkerTokens(site.library.home).create("two"))
    stranger = RemoteLedger(other)
    with pytest.raises((LeaseLost, NotFound)):
        stranger.control(ME.id, JobCommand.LEAVE)
    other.keep_token(task, lease.fence, server.token(lease.task, lease.fence))
    assert stranger.renew(ME, {task: lease.fence}, {}).leases == {task: LeaseStatus.LOST}
    other.keep_token(task, lease.fence, "x" + server.token(lease.task, lease.fence))
    with pytest.raises(ForgedToken):
        stranger.log(task, lease.fence, 1, ["a line"])
    assert ledger.renew(ME, {task: lease.fence}, {}).leases == {task: LeaseStatus.KEEP}
    other.close()


def test_numbers_and_texts_of_a_worker_are_bounded(site: Site, ledger: RemoteLedger) -> None:
    for name in ("one", "two"):
        site.submit(name)
    first, second = ledger.claim(ME.id, ["cpu"], 2)
    ledger.renew(ME, {first.task: 1, second.task: 1}, {first.task: float("nan"), second.task: float("inf")})
    rows = site.library.home.ledger.tasks(ids=[first.task, second.task]).rows
    assert [row.progress for row in rows] == [0.0, 1.0]
    for number in (-1, 2**63 - 1):
        with pytest.raises(Refused):
            ledger.log(first.task, 1, number, ["a line"])
    told = Failure("K" * 1000, "m" * 10_000, "h" * 10_000, "", ("x" * 10_000,) * 200)
    assert ledger.fail(ME.id, first.task, 1, told, float("inf")) is Verdict.OK
    ledger.give_back(ME.id, [(second.task, 1)], "later", float("inf"))
    failed, given = site.library.home.ledger.tasks(ids=[first.task, second.task]).rows
    assert failed.failure
    assert len(json.dumps(asdict(failed.failure))) < 500_000
    assert len(failed.failure.kind) == 60
    assert max(failed.due_in or 0.0, given.due_in or 0.0) <= 86_400


def test_queues_of_ones_own_are_not_for_workers(site: Site, ledger: RemoteLedger) -> None:
    site.library.queues.enqueue("default", "mine", b"")
    assert ledger.claim(ME.id, [queue_lane(site.library.home.owner, "default")], 1) == ()
    assert ledger.claim(ME.id, ["cpu", "gpu", "now"], 3) == ()


def test_tokens_of_footage_and_of_queues_are_not_taken_for_each_other(
    site: Site, server: RemoteServer, ledger: RemoteLedger
) -> None:
    """Whoever gave a footage token back through a queue would end the row of its worker, and all that it holds."""
    task, queues = site.submit("film"), site.library.queues
    lease = taken(ledger)
    token = server.token(task, lease.fence)
    for told in (queues.give_back, queues.held, lambda t: queues.complete(t, lease.job), lambda t: queues.fail(t, "x")):
        with pytest.raises(ForeignToken):
            told(token)
    assert ledger.renew(ME, {task: lease.fence}, {}).leases == {task: LeaseStatus.KEEP}
    job = queues.enqueue("default", "mine", b"").id
    (mine,) = queues.dequeue("default", 1, 60)
    server.keep_token(f"{job}.work", 1, mine.token)
    assert ledger.complete(ME.id, [Finish(f"{job}.work", 1)]).verdicts == (Verdict.LOST,)
    assert queues.complete(mine.token, job).state is JobState.COMPLETED


@pytest.mark.parametrize("method", ["WriteBlob", "CreateManifest"])
def test_whoever_sends_nothing_is_told_so(site: Site, server: RemoteServer, method: str) -> None:
    with pytest.raises(Refused, match="nothing was sent"):
        server.write(method, [])


def test_the_film_is_read_block_by_block_while_it_is_what_was_taken_in(
    site: Site, server: RemoteServer, ledger: RemoteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rushes.library.remote_work.files.BLOCK_BYTES", 1000)
    film = site.folder / "film.mp4"
    film.write_bytes(bytes(range(256)) * 10)
    now = film.stat()
    source = asdict(Fingerprint(str(film), now.st_size, now.st_mtime_ns, now.st_ino))
    site.submit("film", source=source)
    lease = taken(ledger)
    remote = RemoteFilm(server, LocalCache(site.folder / "copies", 1 << 30), server.token(lease.task, lease.fence))
    with remote.open() as file:
        assert file.read() == film.read_bytes()
        file.seek(2500)
        assert file.read(10) == film.read_bytes()[2500:2510]
    assert (remote.name, remote.taken_in) == ("film.mp4", Fingerprint.from_json(source))
    film.write_bytes(b"another")
    with pytest.raises(SourceChanged):
        RemoteFilm(server, LocalCache(site.folder / "more", 1 << 30), server.token(lease.task, lease.fence)).block(0)


def test_of_several_servers_another_is_asked_when_one_is_gone(site: Site, tmp_path: Path) -> None:
    """Each with TLS, and a certificate of its own."""
    ours = authority(tmp_path / "ca")
    options = {
        name: (str(file), "the test") for name, file in zip(("grpc_cert", "grpc_key"), ours.signed("one"), strict=True)
    }
    with Library(site.library.folder, options=options) as library:
        first, second = RpcServer(library, "127.0.0.1:0"), RpcServer(library, "127.0.0.1:0")
        address = f"127.0.0.1:{first.port}"
        first.start()
        second.start()
        token = WorkerTokens(library.home).create("one")
        url = f"grpcs://{address},localhost:{second.port}"
        remote = RemoteServer(ServerAddress(url, token, str(ours.ca)))
        ledger = RemoteLedger(remote)
        assert not ledger.renew(ME, {}, {}).gone
        first.stop()
        assert not ledger.renew(ME, {}, {}).gone
        first = RpcServer(library, address)
        first.start()
        second.stop()
        assert not patiently(lambda: ledger.renew(ME, {}, {})).gone
        first.stop()
        with pytest.raises(StoreAway):
            ledger.renew(ME, {}, {})
        remote.close()


def test_tokens_of_what_is_held_stay_and_others_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TOKENS", 3)
    server = RemoteServer(ServerAddress("grpc://127.0.0.1:9", "one.token"))
    server.keep_token("held", 1, "a token")
    for n in range(9):
        server.keep_token(f"done{n}", 1, "x")
        assert server.token("held", 1) == "a token", "a renewal asks for it"
    assert [n for n in range(9) if server.token(f"done{n}", 1)] == [7, 8]
    server.close()


def test_an_address_that_is_none_is_refused() -> None:
    for url in ("grpc://", "http://host:1", "grpc://host", "grpcs://host:port", "grpc://:x"):
        with pytest.raises(Refused):
            ServerAddress(url, "x").channels()
    told = CliRunner().invoke(main, ["worker", "--server", "http://host:1"])
    assert (told.exit_code, "grpcs://host:port" in told.output) == (2, True)
