"""Blobs as the attempt at one task has them: of a store itself, and through a server with the token of its lease."""

import itertools
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.memory_blobs import MemoryBlobs

from rushes.blobs.folder import FolderBlobs
from rushes.blobs.local_cache import LocalCache
from rushes.blobs.port import AttemptBlobs, Blobs
from rushes.blobs.remote import RemoteBlobs
from rushes.blobs.s3 import S3Blobs
from rushes.bucket.location import BucketLocation
from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, manifest_key, task_id
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.domain.task import Draft, Lease
from rushes.domain.worker import Incarnation
from rushes.ledger.remote import RemoteLedger
from rushes.library import Library
from rushes.library.access.worker_tokens import WorkerTokens
from rushes.remote.client import RemoteServer, ServerAddress
from rushes.surfaces.rpc.server import RpcServer

ME, INPUT, RESULT = "me", "key-input", "key-result"
WORKER = Incarnation("m.h.b.1", "elsewhere", "boot", 1, "1", ("cpu",), 1, "m", "0")
_fresh = itertools.count()


@dataclass(frozen=True)
class AttemptWorld:
    """A store, and the attempt at a task whose inputs are in it."""

    store: Blobs
    blobs: AttemptBlobs
    inputs: tuple[str, ...]  # hashes
    lease: Lease | None = None
    server: RemoteServer | None = None

    def manifest(self, *made: Artifact) -> bytes:
        """What the attempt may commit."""
        job, stage, fence = (self.lease.job, self.lease.stage, self.lease.fence) if self.lease else ("job", "toy", 1)
        return Manifest(RESULT, "out", made, Provenance(job, stage, "p", "1", "", "", "", fence)).to_bytes()


Open = Callable[[Sequence[bytes]], AttemptWorld]


def _stored(store: Blobs, inputs: Sequence[bytes]) -> tuple[str, ...]:
    found = [store.put(ME, data) for data in inputs]
    artifacts = tuple(Artifact(f"a{n}", blob.sha256, blob.size, "x/y") for n, blob in enumerate(found))
    manifest = Manifest(INPUT, "out", artifacts, Provenance("job", "toy", "p", "1", "", "", "", 1))
    store.create(manifest_key(ME, INPUT), manifest.to_bytes())
    return tuple(blob.sha256 for blob in found)


def _direct(store: Blobs) -> Open:
    return lambda inputs: AttemptWorld(store, store, _stored(store, inputs))


def remote_attempt(home: Path, way: Callable[[str], AbstractContextManager[ServerAddress]], stack: ExitStack) -> Open:
    """Of a home, by a server that is reached over `way`: its address and token for an address of this machine."""

    def opened(inputs: Sequence[bytes]) -> AttemptWorld:
        library = stack.enter_context(Library(home))
        server = RpcServer(library, "127.0.0.1:0")
        server.start()
        stack.callback(server.stop)
        hashes, job = _stored(library.home.blobs, inputs), job_id(ME, "film")
        spec = {"owner": ME, "results": {"out": RESULT}, "inputs": {"a": [INPUT]}, "source": None}
        first = Draft(task_id(job, "toy", None), job, "toy", None, json.dumps(spec), "cpu")
        library.home.ledger.submit(NewJob(job, ME, "film", "film", "toys", "{}"), first)
        address = stack.enter_context(way(f"127.0.0.1:{server.port}"))
        remote = RemoteServer(replace(address, token=WorkerTokens(library.home).create("one")))
        stack.callback(remote.close)
        ledger = RemoteLedger(remote)
        ledger.renew(WORKER, {}, {})
        (lease,) = ledger.claim(WORKER.id, ["cpu"], 1)
        cache = LocalCache(home.parent / "copies", 1 << 30)
        blobs = RemoteBlobs(remote, cache, remote.token(lease.task, lease.fence))
        return AttemptWorld(library.home.blobs, blobs, hashes, lease, remote)

    return opened


@contextmanager
def straight(address: str) -> Any:
    """To the server itself, without TLS."""
    yield ServerAddress(f"grpc://{address}", "")


def home_in(folder: Path, place: BucketLocation | None = None) -> Path:
    """A home whose results are in its folder, or in a bucket."""
    home = folder / "home"
    home.mkdir()
    if place:
        said = {"s3_endpoint": place.endpoint, "s3_key": place.key, "s3_secret": place.secret}
        said["blobs"] = f"s3://{place.bucket}/attempt{next(_fresh)}"
        (home / "rushes.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in said.items()))
    return home


def attempt_of(name: str, folder: Path, bucket: Callable[[str], BucketLocation], stack: ExitStack) -> Open:
    """How the blobs of an attempt are opened, by the name of a set-up."""
    kind, _, server = name.partition(":")
    if kind == "remote":
        return remote_attempt(home_in(folder, bucket(server) if server else None), straight, stack)
    if kind == "bucket":
        return _direct(S3Blobs(replace(bucket(server), prefix=f"attempt{next(_fresh)}"), folder / "scratch"))
    return _direct(MemoryBlobs() if kind == "memory" else FolderBlobs(folder / "store"))


SETUPS = ("memory", "folder", "bucket:ministack_s3", "bucket:seaweed_s3", "remote", "remote:seaweed_s3")
