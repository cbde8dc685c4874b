"""The blob store: immutable files named by their sha256, create-only documents, and published names.

First the blobs, then the manifest, then the ledger: what `put` and `create` have answered survives a power cut.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes in the blob store."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class BlobStat:
    """Bytes of a blob, and seconds since it was last stored."""

    size: int
    age: float


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Some bytes of a document or published name, how many it has in all, and a version that changes with its bytes."""

    data: bytes
    size: int
    version: str


@dataclass(frozen=True, slots=True)
class UploadedPart:
    """One part of a file that a browser sends to the bucket."""

    number: int  # from 1
    size: int
    etag: str
    age: float  # seconds since it came


class Multipart(Protocol):
    """A bucket that browsers reach by signed addresses: to send a file whole or in parts, and to read one."""

    @property
    def origin(self) -> str:
        """Scheme and host of the signed addresses: what a page must be allowed to connect to."""

    def begin(self, key: str) -> str:
        """Begin a file that will be called this; answers its id. Nothing is seen of it before it is complete."""

    def sign_put(self, key: str, seconds: int, size: int = 0) -> str:
        """An address that takes a whole file by PUT, for so long, of just that size if one is given.

        Sent again, it replaces the file.
        """

    def sign_get(self, key: str, seconds: int, disposition: str = "") -> str:
        """An address to read a file from, by range as well, for so long; `disposition` may give it a name to save."""

    def sign(self, key: str, id: str, parts: Sequence[tuple[int, int]], seconds: int) -> list[str]:
        """An address for each part (number, size); only a PUT of just that size is taken, and only for so long."""

    def parts(self, key: str, id: str) -> tuple[UploadedPart, ...] | None:
        """The parts that have come, in order; None if it is complete or was aborted."""

    def complete(self, key: str, id: str, parts: Sequence[UploadedPart]) -> None:
        """Make the parts one file, if they still are what they were.

        Raises:
            FileNotFoundError: it is complete or was aborted.
        """

    def abort(self, key: str, id: str) -> None:
        """Forget the parts; no error if there are none."""

    def shut_out(self, origins: Collection[str]) -> list[str]:
        """The pages, of these origins, whose browser does not let them send files to the bucket (CORS).

        Raises:
            NotAllowed: we may not ask.
        """

    def let_in(self, origins: Collection[str]) -> None:
        """Let pages of these origins send and read files; rules that are there stay. Raises as `shut_out`."""

    def abort_older(self, folder: str, seconds: float, but: Collection[str] = ()) -> int:
        """Forget everything incomplete in a folder that began so long ago, `but` these ids; answers how many."""


class AttemptBlobs(Protocol):
    """What of a blob store the attempt at a task needs."""

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that the store writes in; None if it writes in none."""

    def put(self, owner: str, source: Path | bytes) -> Blob:
        """Store bytes or a file under their sha256; storing the same again changes nothing. The source stays.

        Raises:
            NoRoom: the disk is full.
        """

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """A seekable reader.

        Raises:
            DamagedBlob: it is missing.
        """

    def local(self, owner: str, sha256: str) -> Path:
        """A local file with its bytes, to be read only; a bucket copies it to this machine first.

        Raises:
            DamagedBlob: it is missing.
        """

    def create(self, key: str, data: bytes) -> bool:
        """Create a small document; False if one is there already, which stays as it is."""

    def read(self, key: str, start: int = 0, end: int | None = None) -> ByteRange | None:
        """Bytes [start, end) of a document or published name, as far as it goes; None if it is missing.

        Without an end it is read whole, and what does not match what was written is damaged.
        Raises:
            DamagedBlob: a bucket does not give back what was written.
        """


class Blobs(AttemptBlobs, Protocol):
    """Bytes by hash and owner, small documents and published names by key: ten verbs."""

    @property
    def root(self) -> str:
        """What the address of a published name begins with: a path or a URL."""

    def stat(self, owner: str, sha256: str) -> BlobStat | None:
        """How large a blob is and how old, None if it is missing; gc leaves young ones alone."""

    def verify(self, owner: str, sha256: str, *, quarantine: bool = False) -> bool:
        """Whether it is there and its bytes match its name (reads all of it).

        With `quarantine`, one that does not match is taken out of the way and kept for inspection, so that it can be
        made again.
        """

    def delete(self, key: str, was: bytes | None = None, older: float = 0.0) -> bool:
        """Delete any key; whether it went.

        It stays if it has other bytes than it `was`, or was stored within `older` seconds.
        """

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys (blobs, documents, published names) below a prefix, in order."""

    def publish(self, name: str, owner: str, sha256: str) -> None:
        """Give a blob a name for people and other tools (replacing what had it), by link or copy."""
