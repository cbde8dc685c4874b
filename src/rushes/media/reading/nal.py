"""H.264 as NAL units: enough to tell where decoding may begin, and to put two sets of parameters into one header."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rushes.domain.errors import BadMedia

_IDR, _SPS, _PPS, _AUD = 5, 7, 8, 9
_WITH_CHROMA = frozenset({100, 110, 122, 144})  # profiles whose header says how colours are sampled


@dataclass(frozen=True, slots=True)
class Sets:
    """Parameter sets of a stream, and how long the lengths before its units are (0: start codes)."""

    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]
    prefix: int = 0

    @staticmethod
    def of(extradata: bytes) -> "Sets":
        """Those of a header, which is an avcC record or units behind start codes.

        Raises:
            BadMedia: the record ends too early.
        """
        if extradata[:1] != b"\x01":
            found = list(_after_start_codes(extradata))
            return Sets(tuple(u for u in found if _kind(u) == _SPS), tuple(u for u in found if _kind(u) == _PPS))
        sps, at = _listed(extradata, 5, 31)
        pps, _ = _listed(extradata, at, 255)
        return Sets(sps, pps, (extradata[4] & 3) + 1)

    def free_id(self) -> int:
        """An id that none of them has."""
        taken = {_first_number(u, 4) for u in self.sps} | {_first_number(u, 1) for u in self.pps}
        return next(n for n in range(31, -1, -1) if n not in taken)

    def header(self, more: "Sets") -> bytes:
        """An avcC record with these and more, whose lengths take four bytes; colours are sampled 4:2:0 in 8 bits."""
        sps, pps = (*self.sps, *more.sps), (*self.pps, *more.pps)
        highest = max(sps, key=lambda u: (u[1] in _WITH_CHROMA, u[1]))
        record = bytes([1, highest[1], highest[2], max(u[3] for u in sps), 0xFF, 0xE0 | len(sps)]) + _sized(sps)
        record += bytes([len(pps)]) + _sized(pps)
        return record + (b"\xfd\xf8\xf8\x00" if highest[1] in _WITH_CHROMA else b"")


def units(data: bytes, prefix: int) -> Iterator[bytes]:
    """The units of a packet, behind lengths of so many bytes or (0) start codes."""
    if not prefix:
        yield from _after_start_codes(data)
        return
    at = 0
    while at + prefix < len(data):
        size = int.from_bytes(data[at : at + prefix], "big")
        yield data[at + prefix : at + prefix + size]
        at += prefix + size


def is_entry(data: bytes, prefix: int) -> bool:
    """Whether nothing after a packet needs anything before it: an IDR picture, not just a key frame."""
    return any(_kind(unit) == _IDR for unit in units(data, prefix))


def parameters(data: bytes, prefix: int) -> set[bytes]:
    """The parameter sets that a packet brings along."""
    return {unit for unit in units(data, prefix) if _kind(unit) in {_SPS, _PPS}}


def as_sample(data: bytes, prefix: int) -> bytes:
    """A packet as MP4 wants it: lengths of four bytes, parameter sets left to the header."""
    kept = [unit for unit in units(data, prefix) if _kind(unit) not in {_SPS, _PPS, _AUD}]
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in kept)


def _kind(unit: bytes) -> int:
    return unit[0] & 31 if unit else 0


def _listed(record: bytes, at: int, mask: int) -> tuple[tuple[bytes, ...], int]:
    """The units of a record behind their number at an offset, and where they end."""
    found, end = [], at + 1
    for _ in range(int.from_bytes(record[at:end]) & mask):
        start, end = end + 2, end + 2 + int.from_bytes(record[end : end + 2])
        found.append(record[start:end])
    if end > len(record) or not all(found):
        raise BadMedia("the header of its video track is cut off", "Remux it with another program.")
    return tuple(found), end


def _sized(some: Sequence[bytes]) -> bytes:
    return b"".join(len(unit).to_bytes(2, "big") + unit for unit in some)


def _after_start_codes(data: bytes) -> Iterator[bytes]:
    for part in data.split(b"\0\0\1")[1:]:
        unit = part.rstrip(b"\0")  # the longer start code has one zero more, and no unit ends with one
        if unit:
            yield unit


def _first_number(unit: bytes, at: int) -> int:
    """The exponential-Golomb number that begins at a byte."""
    bits = "".join(f"{byte:08b}" for byte in unit[at : at + 4])
    zeros = len(bits) - len(bits.lstrip("0"))
    return int(bits[zeros : 2 * zeros + 1] or "1", 2) - 1
