"""NAL units of H.264: finds IDR pictures, converts packets to AVCC, and merges parameter sets into one avcC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rushes.domain.errors import BadMedia

_IDR, _SPS, _PPS, _AUD = 5, 7, 8, 9
_HIGH_PROFILES = frozenset({100, 110, 122, 144})  # whose avcC also tells the chroma format


@dataclass(frozen=True, slots=True)
class ParameterSets:
    """Parameter sets of a stream, and the bytes of a NAL unit length (0: Annex B start codes)."""

    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]
    length_size: int = 0

    @staticmethod
    def of(extradata: bytes) -> "ParameterSets":
        """Parse extradata: an avcC record or Annex B. Raises BadMedia if the record is truncated."""
        if extradata[:1] != b"\x01":
            found = list(_split_annex_b(extradata))
            sps, pps = (tuple(u for u in found if _nal_type(u) == kind) for kind in (_SPS, _PPS))
            return ParameterSets(sps, pps)
        sps, at = _read_list(extradata, 5, 31)
        pps, _ = _read_list(extradata, at, 255)
        return ParameterSets(sps, pps, (extradata[4] & 3) + 1)

    def free_id(self) -> int:
        """An unused id."""
        taken = {_exp_golomb(u, 4) for u in self.sps} | {_exp_golomb(u, 1) for u in self.pps}
        return next(n for n in range(31, -1, -1) if n not in taken)

    def header(self, more: "ParameterSets") -> bytes:
        """An avcC record of both, for lengths of four bytes and 4:2:0 in 8 bits."""
        sps, pps = (*self.sps, *more.sps), (*self.pps, *more.pps)
        highest = max(sps, key=lambda u: (u[1] in _HIGH_PROFILES, u[1]))
        record = bytes([1, highest[1], highest[2], max(u[3] for u in sps), 0xFF, 0xE0 | len(sps)]) + _write_list(sps)
        record += bytes([len(pps)]) + _write_list(pps)
        return record + (b"\xfd\xf8\xf8\x00" if highest[1] in _HIGH_PROFILES else b"")


def units(data: bytes, length_size: int) -> Iterator[bytes]:
    """The NAL units of a packet; `length_size` 0 means Annex B."""
    if not length_size:
        yield from _split_annex_b(data)
        return
    at = 0
    while at + length_size < len(data):
        size = int.from_bytes(data[at : at + length_size], "big")
        yield data[at + length_size : at + length_size + size]
        at += length_size + size


def is_idr(data: bytes, length_size: int) -> bool:
    """Whether a packet holds an IDR picture: nothing after it refers to anything before it."""
    return any(_nal_type(unit) == _IDR for unit in units(data, length_size))


def parameter_sets(data: bytes, length_size: int) -> set[bytes]:
    """The SPS and PPS units in a packet."""
    return {unit for unit in units(data, length_size) if _nal_type(unit) in {_SPS, _PPS}}


def to_avcc(data: bytes, length_size: int) -> bytes:
    """A packet as AVCC with lengths of four bytes, without parameter sets."""
    kept = [unit for unit in units(data, length_size) if _nal_type(unit) not in {_SPS, _PPS, _AUD}]
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in kept)


def _nal_type(unit: bytes) -> int:
    return unit[0] & 31 if unit else 0


def _read_list(record: bytes, at: int, mask: int) -> tuple[tuple[bytes, ...], int]:
    """The units of a counted list at an offset, and the end of the list."""
    found, end = [], at + 1
    for _ in range(int.from_bytes(record[at:end]) & mask):
        start, end = end + 2, end + 2 + int.from_bytes(record[end : end + 2])
        found.append(record[start:end])
    if end > len(record) or not all(found):
        raise BadMedia("its H.264 header is truncated", "Remux it with another program.")
    return tuple(found), end


def _write_list(some: Sequence[bytes]) -> bytes:
    return b"".join(len(unit).to_bytes(2, "big") + unit for unit in some)


def _split_annex_b(data: bytes) -> Iterator[bytes]:
    for part in data.split(b"\0\0\1")[1:]:
        unit = part.rstrip(b"\0")  # of a longer start code; no unit ends with a zero
        if unit:
            yield unit


def _exp_golomb(unit: bytes, at: int) -> int:
    """The Exp-Golomb number at a byte."""
    bits = "".join(f"{byte:08b}" for byte in unit[at : at + 4])
    zeros = len(bits) - len(bits.lstrip("0"))
    return int(bits[zeros : 2 * zeros + 1] or "1", 2) - 1
