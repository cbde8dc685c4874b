"""The contract of what an attempt needs of a blob store: of every store, and over gRPC with nothing but a token."""

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attempt_kit import (
    ME,
    RESULT,
    SETUPS,
    WORKER,
    AttemptWorld,
    Open,
    attempt_of,
    home_in,
    remote_attempt,
    straight,
)
from tests.api.kit import wait_for

from rushes.bucket.location import BucketLocation
from rushes.domain.errors import DamagedBlob, NoRoom, StoreAway
from rushes.domain.keys import blob_key, manifest_key
from rushes.domain.result import Artifact
from rushes.domain.task import LeaseStatus
from rushes.ledger.remote import RemoteLedger
from rushes.remote import client
from rushes.remote.client import RemoteServer
from rushes.remote.generated import workers_pb2
from rushes.surfaces.rpc import server as rpc_server
from rushes.surfaces.rpc.limits import LASTING, CallLimit

LARGE = bytes(range(256)) * 12_000  # 3 MB: more than a message, and read at the bucket where it can sign


@pytest.fixture(params=SETUPS)
def attempt(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as stack:
        yield attempt_of(request.param, tmp_path, request.getfixturevalue, stack)


def test_what_is_stored_is_named_by_its_bytes_and_again_changes_nothing(attempt: Open, tmp_path: Path) -> None:
    world, source = attempt([]), tmp_path / "made.mp4"
    source.write_bytes(LARGE)
    for data, given in ((b"made", b"made"), (b"", b""), (LARGE, source)):
        wanted = hashlib.sha256(data).hexdigest()
        first, again = (world.blobs.put(ME, given) for _ in range(2))
        assert (first.sha256, first.size) == (again.sha256, again.size) == (wanted, len(data))
        assert world.store.local(ME, wanted).read_bytes() == data
    assert source.read_bytes() == LARGE, "the source stays"


def test_inputs_are_read_as_files(attempt: Open) -> None:
    world = attempt([b"small", LARGE])
    small, large = world.inputs
    assert world.blobs.local(ME, small).read_bytes() == b"small"
    assert world.blobs.local(ME, large) == world.blobs.local(ME, large)
    with world.blobs.open(ME, large) as file:
        file.seek(2_999_999)
        assert file.read(10) == LARGE[2_999_999:3_000_009]


def test_an_input_that_is_missing_is_damaged(attempt: Open) -> None:
    world = attempt([b"gone"])
    world.store.delete(blob_key(ME, world.inputs[0]))
    with pytest.raises(DamagedBlob):
        world.blobs.local(ME, world.inputs[0])
    with pytest.raises(DamagedBlob):
        world.blobs.open(ME, world.inputs[0])


def test_a_manifest_is_created_once(attempt: Open) -> None:
    world = attempt([])
    made = world.blobs.put(ME, b"made")
    first = world.manifest(Artifact("a", made.sha256, 4, "x/y"))
    assert world.blobs.create(manifest_key(ME, RESULT), first)
    assert not world.blobs.create(manifest_key(ME, RESULT), first)
    assert not world.blobs.create(manifest_key(ME, RESULT), world.manifest())
    found = world.store.read(manifest_key(ME, RESULT))
    assert found
    assert found.data == first


def test_documents_are_read_whole_and_in_part(attempt: Open) -> None:
    world, key = attempt([b"a", b"b"]), manifest_key(ME, "key-input")
    whole = world.blobs.read(key)
    assert whole
    assert (whole.size, whole.data[:1]) == (len(whole.data), b"{")
    part = world.blobs.read(key, 2, 7)
    assert part
    assert (part.data, part.size) == (whole.data[2:7], whole.size)
    last = world.blobs.read(key, whole.size - 3, whole.size + 99)
    assert last
    assert last.data == whole.data[-3:]
    world.store.delete(key)
    assert world.blobs.read(key) is None


@pytest.fixture
def signing(tmp_path: Path, seaweed_s3: BucketLocation) -> Iterator[AttemptWorld]:
    """A remote attempt whose inputs are in a bucket that signs."""
    with ExitStack() as stack:
        yield remote_attempt(home_in(tmp_path, seaweed_s3), straight, stack)([b"small", LARGE])


def test_large_inputs_are_read_at_the_bucket_by_signed_addresses(
    signing: AttemptWorld, seaweed_s3: BucketLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses, through = list[str](), 0

    def read(server: RemoteServer, method: str, request: Any) -> Iterator[Any]:
        nonlocal through
        for part in real(server, method, request):
            addresses.extend([part.address] if part.address else [])
            through += len(part.data)
            yield part

    real = RemoteServer.read
    monkeypatch.setattr(RemoteServer, "read", read)
    small, large = signing.inputs
    assert signing.blobs.local(ME, large).read_bytes() == LARGE
    (address,) = addresses
    assert address.startswith(seaweed_s3.endpoint)
    assert through == 0, "nothing of it came through the server"
    assert signing.blobs.local(ME, small).read_bytes() == b"small"
    assert (len(addresses), through) == (1, 5)
    for other in (address.replace(large, small), address[:-1] + ("0" if address[-1] != "0" else "1")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(other, timeout=60)
        assert refused.value.code == 403
        refused.value.close()


def test_other_bytes_behind_a_signed_address_are_damaged(
    signing: AttemptWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.1)
    store: Any = signing.store
    store._store.put(blob_key(ME, signing.inputs[1]), LARGE[::-1])
    with pytest.raises(DamagedBlob):
        signing.blobs.local(ME, signing.inputs[1])


def test_a_server_whose_disk_is_full_takes_nothing(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    (home / "rushes.toml").write_text("reserve_mb = 1000000000\n")
    with ExitStack() as stack, pytest.raises(NoRoom):
        remote_attempt(home, straight, stack)([]).blobs.put(ME, b"made")


def test_neither_files_nor_other_calls_lock_a_renewal_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease is lost if it cannot be renewed for 30 seconds; a file may take longer."""
    monkeypatch.setattr(rpc_server, "CallLimit", partial(CallLimit, 1, dict.fromkeys(LASTING, 1)))
    with ExitStack() as stack:
        world = remote_attempt(home_in(tmp_path), straight, stack)([b"x" * 50_000_000])
        assert world.server
        assert world.lease
        token = world.server.token(world.lease.task, world.lease.fence)
        ask = workers_pb2.ReadBlobRequest(task_token=token, sha256=world.inputs[0])
        slow = world.server.read("ReadBlob", ask)
        assert next(slow).size == 50_000_000
        with pytest.raises(StoreAway, match="too many calls"):
            next(world.server.read("ReadBlob", ask))
        ledger = RemoteLedger(world.server)
        waiting = world.server.begin("Wait", workers_pb2.WaitRequest(lanes=["cpu"], seconds=20.0), 60.0)
        wait_for(lambda: is_refused(ledger.sweep), "nobody waits")
        kept = ledger.renew(WORKER, {world.lease.task: world.lease.fence}, {}).leases
        assert kept == {world.lease.task: LeaseStatus.KEEP}
        waiting.cancel()


def is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except StoreAway as e:
        return "too many calls" in str(e)
    return False
