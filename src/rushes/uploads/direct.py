"""Direct uploads: browsers send parts to the bucket by signed addresses; the first bytes are checked."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from rushes.blobs.port import Blobs, Multipart, UploadedPart
from rushes.domain.errors import StoreAway
from rushes.media.sniff import why_not_footage

PART = 16 << 20  # bytes: what a lost line costs at most
LARGEST = 95 << 20  # of a part; many proxies end a body at 100 MB
PARTS = 9_000  # S3 allows 10,000
AT_ONCE = 20  # addresses that are signed together
LARGEST_PUT = 5 << 30  # bytes: S3 takes no more by one PUT
OTHER_SIZE = "does not have the announced size"
OTHER_BYTES = "does not match the announced sha256"
_READ = 8 << 20  # bytes at a time when a promised hash is compared
SECONDS = 900  # that one can be used for; whoever is late asks again


HEAD = 4096  # bytes that are looked at
OTHER = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "an archive",
    b"MZ": "a program",
    b"\x7fELF": "a program",
    b"\x1f\x8b": "packed",
}


def describe_non_footage(head: bytes) -> str:
    """What it is instead; empty if it may be footage."""
    other = next((f"is {what}, not a video" for magic, what in OTHER.items() if head.startswith(magic)), "")
    return other or why_not_footage(head) or ""


@dataclass(frozen=True, slots=True)
class SignedPart:
    """A part that has not come yet, [start, end) of the file, and the address to PUT it to, good for 15 minutes."""

    number: int
    start: int
    end: int
    url: str


@dataclass(frozen=True, slots=True)
class DirectUpload:
    """One upload that goes to the bucket; the bucket knows which parts have come."""

    bucket: Multipart
    blobs: Blobs
    key: str
    id: str
    size: int
    part: int

    def size_received(self) -> int:
        """How many bytes have come in parts of the right size; none while the bucket does not answer."""
        with suppress(StoreAway):
            sent = self._sent()
            whole = self.blobs.read(self.key, 0, 1) if sent is None else None
            return (whole.size if whole else 0) if sent is None else sum(part.size for part in sent)
        return 0

    def is_aborted(self) -> bool:
        """Whether it was aborted: there are neither parts nor a file."""
        return self.bucket.parts(self.key, self.id) is None and self.blobs.read(self.key, 0, 1) is None

    def age(self, begun: float) -> float:
        """Seconds since the last part came, or since it was `begun`."""
        with suppress(StoreAway):
            return min((part.age for part in self.bucket.parts(self.key, self.id) or ()), default=begun)
        return 0.0

    def missing(self) -> tuple[SignedPart, ...]:
        """The next parts that have to be sent."""
        come = {part.number for part in self._sent() or ()}
        wanted = [(n, start, end) for n, start, end in self._grid() if n not in come][:AT_ONCE]
        urls = self.bucket.sign(self.key, self.id, [(n, end - start) for n, start, end in wanted], SECONDS)
        return tuple(SignedPart(*one, url) for one, url in zip(wanted, urls, strict=True))

    def complete(self, sha256: str) -> tuple[str, str]:
        """Make it one file (or find it); answers its ETag, and why it is not what was promised."""
        sent = self._sent()
        if sent is not None:  # else it was done before; asked to complete nothing, buckets answer 400
            with suppress(FileNotFoundError):
                self.bucket.complete(self.key, self.id, sent)
        head = self.blobs.read(self.key, 0, HEAD)
        if head is None or head.size != self.size:
            return "", OTHER_SIZE
        other = OTHER_BYTES if sha256 and self._sum() != sha256 else ""
        return head.version, describe_non_footage(head.data) or other

    def abort(self) -> None:
        """Forget its parts."""
        self.bucket.abort(self.key, self.id)

    def _sum(self) -> str:
        digest = hashlib.sha256()
        for start in range(0, self.size, _READ):
            part = self.blobs.read(self.key, start, start + _READ)
            digest.update(part.data if part else b"")
        return digest.hexdigest()

    def _sent(self) -> list[UploadedPart] | None:
        sizes = {n: end - start for n, start, end in self._grid()}
        sent = self.bucket.parts(self.key, self.id)
        return None if sent is None else [part for part in sent if part.size == sizes.get(part.number)]

    def _grid(self) -> Iterator[tuple[int, int, int]]:
        starts = range(0, self.size, self.part)
        return ((n, start, min(start + self.part, self.size)) for n, start in enumerate(starts, 1))


def part_size(size: int) -> int | None:
    """How a file of that size is cut; None if it is too large to be sent so."""
    part = max(PART, -(-size // PARTS))
    return part if part <= LARGEST else None
