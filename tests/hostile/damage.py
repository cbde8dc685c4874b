"""Good films, broken by chance: the same seed breaks them in the same way."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.hostile.case import Case, Expectation, Lure
from tests.media_kinds.films import Sound, make
from tests.media_kinds.kinds import BY_FRAME, IN_MS, IN_TS, PLAIN

Damage = Callable[[bytearray, random.Random], bytearray]
GOOD = {
    "mp4": PLAIN,
    "fragmented.mp4": replace(PLAIN, muxing={"movflags": "frag_keyframe+delay_moov"}),
    "mkv": replace(IN_MS, sounds=[Sound()]),
    "webm": replace(IN_MS, codec="libvpx", sounds=[Sound(codec="libopus")]),
    "ts": IN_TS,
    "mpg": replace(BY_FRAME, codec="mpeg2video", options={"bf": "2"}, gop=12, sounds=[Sound(codec="mp2")]),
    "avi": replace(BY_FRAME, codec="mpeg4", sounds=[Sound(codec="mp3")]),
    "asf": replace(IN_MS, codec="wmv2", sounds=[Sound(codec="mp3")]),
    "flac.mkv": replace(IN_MS, codec="ffv1", sounds=[Sound(codec="flac")]),
    "mov": replace(PLAIN, codec="prores_ks", pixels="yuv422p10le", sounds=[Sound(codec="pcm_s16le")]),
}


def _flipped(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(max(1, len(data) // 5000)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def _flipped_head(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(8):
        data[chance.randrange(min(1500, len(data)))] ^= 1 << chance.randrange(8)
    return data


def _zeroed(data: bytearray, chance: random.Random) -> bytearray:
    at, length = _part(data, chance)
    data[at : at + length] = bytes(length)
    return data


def _noise(data: bytearray, chance: random.Random) -> bytearray:
    at, length = _part(data, chance)
    data[at : at + length] = chance.randbytes(length)
    return data


def _removed(data: bytearray, chance: random.Random) -> bytearray:
    at, length = _part(data, chance)
    del data[at : at + length]
    return data


def _doubled(data: bytearray, chance: random.Random) -> bytearray:
    at, length = _part(data, chance)
    return data[: at + length] + data[at:]


def _cut_off(data: bytearray, chance: random.Random) -> bytearray:
    return data[: chance.randrange(1, len(data))]


def _large_numbers(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(3):
        at = chance.randrange(len(data) - 8)
        data[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\x80\0\0\0"))
    return data


def _large_in_head(data: bytearray, chance: random.Random) -> bytearray:
    head, rest = data[:2000], data[2000:]
    return _large_numbers(head, chance) + rest


def _large_at_end(data: bytearray, chance: random.Random) -> bytearray:
    """Where many containers have their tables."""
    return data[:-3000] + _large_numbers(data[-3000:], chance)


def _glued(data: bytearray, chance: random.Random) -> bytearray:
    return data + data[chance.randrange(len(data)) :]


DAMAGES: dict[str, Damage] = {
    "flipped": _flipped,
    "flipped_head": _flipped_head,
    "zeroed": _zeroed,
    "noise": _noise,
    "removed": _removed,
    "doubled": _doubled,
    "cut_off": _cut_off,
    "large_in_head": _large_in_head,
    "large_at_end": _large_at_end,
    "large": _large_numbers,
    "glued": _glued,
}


def cases(seed: int) -> Iterator[Case]:
    """Every film with every damage."""
    for kind in GOOD:
        for name in DAMAGES:
            yield Case(f"{name}.{kind}", _broken(kind, name, seed), Expectation.EITHER)


def _broken(kind: str, name: str, seed: int) -> Callable[[Path, Lure], None]:
    def make_broken(path: Path, _lure: Lure) -> None:
        data = bytearray(make(path, GOOD[kind]).read_bytes())
        path.write_bytes(DAMAGES[name](data, random.Random(f"{seed} {kind} {name}")))

    return make_broken


def _part(data: bytearray, chance: random.Random) -> tuple[int, int]:
    length = chance.randrange(1, max(2, len(data) // 10))
    return chance.randrange(len(data) - length), length
