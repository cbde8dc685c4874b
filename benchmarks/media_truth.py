"""Whether media work is right: cuts against the truth of a film, frames of clips, kinds of files, bytes of proxies."""

import ctypes
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import av
from tests.media_kinds.films import Kind, make
from tests.media_kinds.kinds import KINDS
from tests.media_kinds.test_media_kinds import test_chunked_and_joined_is_what_an_undivided_decode_shows as check

from benchmarks.media_films import SLOW, Film, number_of
from benchmarks.media_work import CHUNK, ffmpeg, proxy
from rushes.domain.errors import BadMedia
from rushes.media.developing import proxy as proxy_module
from rushes.media.encoders import x264_options
from rushes.media.reading.probe import probe

PROCESSORS = {"all": None, "SSSE3": 0xDB, "SSE2": 0x1B}  # flags of libavutil


@dataclass(frozen=True, slots=True)
class Score:
    """How well cuts were found, to the frame; and how many slow changes were told by their kind, or seen in vain."""

    f1: float
    told: int
    slow: int
    false: int


def score(film: Film, said: str) -> Score:
    """Of what a detector said: pairs of a frame and a kind. Cuts inside slow changes count for nobody."""
    found = [(int(frame), str(kind)) for frame, kind in json.loads(said)]
    slow = [(a - SLOW // 2, b + SLOW // 2, kind) for a, b, kind in film.slow]
    hard = {f for f, kind in found if kind == "cut" and not any(a <= f < b for a, b, _ in slow)}
    right = len(hard & set(film.cuts))
    told = sum(any(a <= f < b and kind == k for f, k in found) for a, b, kind in slow)
    false = sum(k != "cut" and not any(a <= f < b for a, b, _ in slow) for f, k in found)
    return Score(2 * right / max(1, len(hard) + len(film.cuts)), told, len(slow), false)


def frames_off(film: Path, clip: Path, start: Fraction, end: Fraction) -> int:
    """Frames of a clip of a film with numbers that are missing, too many, another picture or at another time."""
    want = [(time, number) for time, number in _numbers(film) if start <= time < end]
    got = _numbers(clip)
    off = abs(len(got) - len(want))
    for (time, number), (at, wanted) in zip(got, want, strict=False):
        off += number != wanted or abs(time - (at - want[0][0])) > Fraction(1, 2000)
    return off


def _numbers(path: Path) -> list[tuple[Fraction, int]]:
    with av.open(str(path)) as container:
        base = container.streams.video[0].time_base or Fraction(1)
        return [((frame.pts or 0) * base, number_of(frame)) for frame in container.decode(video=0)]


@dataclass(frozen=True, slots=True)
class Kinds:
    """How many kinds of files were done exactly or refused with the reason, and by ffmpeg's default exactly."""

    ours: int
    all: int
    peer: int
    peers: int


def exact_kinds(folder: Path) -> Kinds:
    """Every frame, time and sample of every kind of film, in chunks."""
    ours, peer = 0, []
    for name, kind in KINDS.items():
        with TemporaryDirectory(dir=folder) as place:
            ours += _is_exact(name, kind, Path(place))
        if kind.times and not kind.refused:
            with TemporaryDirectory(dir=folder) as place:
                peer.append(_is_exact_by_default(make(Path(place) / name, kind)))
    return Kinds(ours, len(KINDS), sum(peer), len(peer))


def _is_exact(name: str, kind: Kind, place: Path) -> bool:
    try:
        if not kind.refused:
            check(name, place)
            return True
        probe(make(place / name, kind))
    except (AssertionError, BadMedia) as e:
        print(f"{name}: {str(e)[:80]}", file=sys.stderr)
        return bool(kind.refused and re.search(kind.refused, str(e)))
    return False


def _is_exact_by_default(path: Path) -> bool:
    """Whether a proxy by ffmpeg has the times of the film, as far as they are told apart by a millisecond."""
    made = path.with_name("peer.mp4")
    try:
        ffmpeg("-i", path, "-an", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", made)
        want, got = _times(path), _times(made)
    except (subprocess.CalledProcessError, av.FFmpegError):
        return False
    return len(want) == len(got) and all(
        abs((a - want[0]) - (b - got[0])) <= Fraction(1, 1000) for a, b in zip(want, got, strict=True)
    )


def _times(path: Path) -> list[Fraction]:
    with av.open(str(path)) as container:
        stream = container.streams.best("video")
        assert isinstance(stream, av.VideoStream)
        return [(f.pts or 0) * (f.time_base or Fraction(1)) for f in container.decode(stream)]


def other_bytes(film: Path, folder: Path) -> dict[str, bool]:
    """By the way in which a proxy was made: whether its bytes differ from the first."""
    ways = {"two workers": (2, "all"), "again": (2, "all"), "one worker": (1, "all"), "SSSE3 only": (2, "SSSE3")}
    ways["SSE2 only"] = (1, "SSE2")
    hashes = {}
    for name, (workers, processor) in ways.items():
        with TemporaryDirectory(dir=folder) as place:
            text = "import sys; from benchmarks.media_truth import made_on; made_on(*sys.argv[1:])"
            given = [str(film), place, str(workers), processor]
            subprocess.run([sys.executable, "-c", text, *given], check=True)
            files = sorted(Path(place).glob("piece*.mp4"))
            hashes[name] = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    first = next(iter(hashes.values()))
    assert len(first) > 64 // CHUNK // 3
    return {name: found != first for name, found in hashes.items()}


def made_on(film: str, out: str, workers: str, processor: str) -> None:
    """Make a proxy as if this processor could do less."""
    flags = PROCESSORS[processor]
    if flags is not None:
        library = next(iter(re.findall(r"/\S*libavutil\S*", Path("/proc/self/maps").read_text("utf-8"))))
        ctypes.CDLL(library).av_force_cpu_flags(flags)
        told = f"asm={'SSSE3' if processor == 'SSSE3' else 'SSE2'}"

        def less(crf: int) -> dict[str, str]:
            options = x264_options(crf)
            return {**options, "x264-params": f"{options['x264-params']}:{told}"}

        vars(proxy_module)["x264_options"] = less
    proxy(Path(film), Path(out), int(workers))()
