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
class Part:
    """Some bytes of a document or published name, how many it has in all, and a word that changes with its bytes."""

    data: bytes
    size: int
    version: str


@dataclass(frozen=True, slots=True)
class Sent:
    """One part of a file that comes straight to the bucket."""

    number: int  # from 1
    size: int
    etag: str
    age: float  # seconds since it came


class Multipart(Protocol):
    """A bucket that takes a file in parts straight from a browser, which is given signed addresses for them."""

    @property
    def origin(self) -> str:
        """Scheme and host of the signed addresses: what a page must be allowed to connect to."""

    def begin(self, key: str) -> str:
        """Begin a file that will be called this; answers its id. Nothing is seen of it before it is complete."""

    def sign(self, key: str, id: str, parts: Sequence[tuple[int, int]], seconds: int) -> list[str]:
        """An address for each part (number, size); only a PUT of just that size is taken, and only for so long."""

    def there(self, key: str, id: str) -> tuple[Sent, ...] | None:
        """The parts that have come, in order; None if it is complete or was aborted."""

    def complete(self, key: str, id: str, parts: Sequence[Sent]) -> None:
        """Make the parts one file, if they still are what they were.

        Raises:
            FileNotFoundError: it is complete or was aborted.
        """

    def abort(self, key: str, id: str) -> None:
        """Forget the parts; no error if there are none."""

    def abort_older(self, folder: str, seconds: float, but: Collection[str] = ()) -> int:
        """Forget everything incomplete in a folder that began so long ago, `but` these ids; answers how many."""


class Blobs(Protocol):
    """Bytes by hash and owner, small documents by key."""

    def put(self, owner: str, source: Path | bytes) -> Blob:
        """Store bytes or a file under their sha256; storing the same again changes nothing. The source stays.

        Raises:
            NoRoom: the disk is full.
        """

    def size(self, owner: str, sha256: str) -> int | None:
        """How large a blob is, None if it is not there."""

    def age(self, owner: str, sha256: str) -> float | None:
        """Seconds since a blob was last stored, None if it is not there; gc leaves young ones alone."""

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """A seekable reader.

        Raises:
            DamagedBlob: it is not there.
        """

    def local(self, owner: str, sha256: str) -> Path:
        """A local file with its bytes, to be read only; a far store copies it to scratch first.

        Raises:
            DamagedBlob: it is not there.
        """

    def sound(self, owner: str, sha256: str) -> bool:
        """Whether it is there and its bytes match its name (reads all of it)."""

    def quarantine(self, owner: str, sha256: str) -> None:
        """Take a damaged blob out of the way, so that it can be made again; kept for a look.

        One that is sound stays: whoever found it damaged may have slept while others mended it.
        """

    def drop(self, owner: str, sha256: str, older: float = 0.0) -> bool:
        """Delete a blob that nothing names any more, unless it was stored within `older` seconds; whether it went."""

    def create(self, key: str, data: bytes) -> bool:
        """Create a small document; False if one is there already, which stays as it is."""

    def read(self, key: str) -> bytes | None:
        """The document's bytes, None if it is not there."""

    def part(self, key: str, start: int, end: int) -> Part | None:
        """Bytes [start, end) of a document or published name, as far as it goes; None if it is not there."""

    def remove(self, key: str, was: bytes | None = None) -> None:
        """Delete a document or a published name (only while it has the bytes it `was`); no error if it is gone."""

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys (blobs, documents, published names) below a prefix, in order."""

    def publish(self, name: str, owner: str, sha256: str) -> None:
        """Give a blob a name for people and other tools (replacing what had it), by link or copy."""

    def address(self, name: str) -> str:
        """Where a published name is found: a path or a URL."""

    def room(self) -> int | None:
        """Free bytes, None where there is no such limit."""

    def tidy(self) -> int:
        """Remove temporary files that dead processes left on this machine; answers how many."""
