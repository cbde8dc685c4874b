"""The files of a task that a worker without credentials holds: its inputs, its film, and what it makes."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from rushes.blobs.documents import read_document
from rushes.blobs.local_disk import free_bytes
from rushes.blobs.manifests import parse_manifest
from rushes.domain.errors import DamagedBlob, NeverWorks, NoRoom, SourceMissing
from rushes.domain.keys import blob_key, manifest_key
from rushes.domain.result import Artifact, Manifest, Result
from rushes.domain.task import Lease, parse_spec
from rushes.domain.video import BlockOriginal, RemoteOriginal
from rushes.home import version
from rushes.library.remote_work.leases import RemoteLeases
from rushes.worker.broker.attempt import Attempt, AttemptDeps, adopt
from rushes.worker.scratch import scratch

CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 8 << 20  # of a film that is a file of this machine
SIGNED_BYTES = 1 << 20  # blobs from this size on are read at the bucket, where it can sign
SIGNED_SECONDS = 600
ATTEMPTS = 256  # whose inputs are remembered


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """How many bytes, and these; or the address at which they are read."""

    size: int
    parts: Iterable[bytes] = ()
    address: str = ""


@dataclass(frozen=True, slots=True)
class FilmAnswer:
    """What a worker is told of a film."""

    name: str
    taken_in: str
    block_size: int


class RemoteFiles:
    """Each verb takes a task token, and checks that its lease still counts."""

    def __init__(self, leases: RemoteLeases) -> None:
        self._leases, self._home = leases, leases.home
        self._attempts: OrderedDict[tuple[str, int], Attempt] = OrderedDict()

    def adopt(self, token: str, key: str) -> Result | None:
        """A result of the task that was committed before, if all of it is sound."""
        owner, results, _ = _named(self._leases.held(token))
        return adopt(self._home.blobs, owner, _one_of(key, results))

    def manifest(self, token: str, key: str) -> FileAnswer:
        """The manifest of one of the task's inputs; no byte if it is missing."""
        owner, _, inputs = _named(self._leases.held(token))
        data = read_document(self._home.blobs, manifest_key(owner, _one_of(key, inputs)))
        return FileAnswer(len(data), _pieces(data)) if data else FileAnswer(0)

    def blob(self, token: str, sha256: str) -> FileAnswer:
        """A blob that one of the task's inputs names.

        Raises:
            DamagedBlob: it is missing.
        """
        lease = self._leases.held(token)
        owner = _named(lease)[0]
        if not self._attempt(lease).may_read(sha256):
            raise NeverWorks(f"blob {sha256[:12]!r} does not belong to this task")
        found = self._home.blobs.stat(owner, sha256)
        if found is None:
            raise DamagedBlob(f"blob {sha256[:12]} is missing")
        if found.size >= SIGNED_BYTES and (signer := self._home.multipart):
            return FileAnswer(found.size, address=signer.sign_get(blob_key(owner, sha256), SIGNED_SECONDS))
        return FileAnswer(found.size, _read(lambda: self._home.blobs.open(owner, sha256)))

    def film(self, token: str) -> FilmAnswer:
        """The original of the task. Raises SourceMissing."""
        original = self._original(self._leases.held(token))
        size = original.block_size if isinstance(original, BlockOriginal) else BLOCK_BYTES
        return FilmAnswer(original.name, json.dumps(asdict(original.taken_in)), size)

    def film_block(self, token: str, number: int) -> FileAnswer:
        """One block of the original, once it is known to be what was taken in.

        Raises:
            SourceMissing, SourceChanged: it is not.
        """
        original = self._original(self._leases.held(token))
        if isinstance(original, BlockOriginal):
            path = original.block(number)
            return FileAnswer(path.stat().st_size, _read(lambda: path.open("rb")))
        with original.open() as file:
            file.seek(number * BLOCK_BYTES)
            data = file.read(BLOCK_BYTES)
        return FileAnswer(len(data), _pieces(data))

    def write(self, token: str, sha256: str, size: int, parts: Iterable[bytes]) -> None:
        """Store what the task made.

        Raises:
            NoRoom: the disk is full.
            NeverWorks: the data does not match the announced hash, or too many.
        """
        lease, blobs, s = self._leases.held(token), self._home.blobs, self._home.settings
        if not 0 <= size <= s.slot_file_gb << 30:
            raise NeverWorks(f"a file can have at most {s.slot_file_gb} GB")
        free = free_bytes(blobs)
        if free is not None and free - size < s.reserve_mb << 20:
            raise NoRoom("the disk of the server is nearly full")
        with scratch(self._home.scratch) as folder:
            path = folder / "incoming"
            if _received(path, parts, size) != sha256:
                raise NeverWorks("the data does not match the announced hash")
            self._leases.held(token)  # a lease may be lost while a large file comes
            blobs.put(_named(lease)[0], path)

    def create(self, token: str, key: str, data: bytes) -> bool:
        """Create the manifest of a result of the task; False if one is there already.

        Raises:
            NeverWorks: the task could not have committed it.
        """
        lease = self._leases.held(token)
        owner, results, _ = _named(lease)
        manifest = parse_manifest(data, _one_of(key, results))
        told = (manifest.provenance.run_id, manifest.provenance.stage, manifest.provenance.attempt)
        if data != manifest.to_bytes() or told != (lease.job, lease.stage, lease.fence):
            raise NeverWorks("this is not a manifest of this attempt")
        self._check(lease, owner, manifest)
        return self._home.blobs.create(manifest_key(owner, key), data)

    def _check(self, lease: Lease, owner: str, manifest: Manifest) -> None:
        def is_stored(artifact: Artifact) -> bool:
            found = self._home.blobs.stat(owner, artifact.sha256)
            return found is not None and found.size == artifact.size

        self._attempt(lease).check_manifest(manifest, is_stored)

    def _original(self, lease: Lease) -> RemoteOriginal:
        original = self._attempt(lease).original
        if original is None:
            raise SourceMissing("this task has no original")
        return original

    def _attempt(self, lease: Lease) -> Attempt:
        """The attempt with its inputs read, as a worker with credentials has it."""
        at = lease.task, lease.fence
        attempt = self._attempts.get(at)
        if attempt is None:
            attempt = Attempt(AttemptDeps.on(self._home.blobs, self._home.original, version()), lease)
            attempt.read_inputs()
            self._attempts[at] = attempt
            while len(self._attempts) > ATTEMPTS:
                self._attempts.popitem(last=False)
        return attempt


def _named(lease: Lease) -> tuple[str, list[str], list[str]]:
    """Whose task it is, and the keys of its results and of its inputs."""
    spec = parse_spec(lease.spec, ("inputs",))
    inputs = [str(key) for keys in spec["inputs"].values() for key in keys]
    return str(spec["owner"]), list(spec["results"].values()), inputs


def _one_of(key: str, keys: list[str]) -> str:
    if key not in keys:
        raise NeverWorks(f"result {key[:80]!r} does not belong to this task")
    return key


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES))


def _read(open: Callable[[], BinaryIO]) -> Iterator[bytes]:
    """Opened with the first byte that is asked for: a worker that has the file already asks for none."""
    with open() as file:
        while data := file.read(CHUNK_BYTES):
            yield data


def _received(path: Path, parts: Iterable[bytes], size: int) -> str:
    digest, came = hashlib.sha256(), 0
    with path.open("wb") as file:
        for part in parts:
            came += len(part)
            if came > size:
                raise NeverWorks("more data arrived than was announced")
            digest.update(part)
            file.write(part)
    return digest.hexdigest() if came == size else ""
