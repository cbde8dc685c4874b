"""Films for whole runs: a silent toy, and a short one with the voice."""

import functools
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

from rushes.engines.images import decode_jpeg, resize

DEADLINE = 240.0
ROOT = Path(__file__).resolve().parents[2]
VOICE = ROOT / "scripts" / "demo_media" / "jfk.flac"


Paint = Callable[[int, int, tuple[int, int]], np.ndarray]  # frame, rate, size


def draw(
    path: Path,
    seconds: int,
    size: tuple[int, int] = (64, 36),
    rate: int = 10,
    voice: Path | None = None,
    paint: Paint | None = None,
) -> Path:
    """A film with a key frame every second, of changing greys with a cut every three; a voice from second 1 on."""
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=rate)
        video.width, video.height, video.pix_fmt, video.gop_size = *size, "yuv420p", rate
        video.options = {"x264-params": f"keyint={rate}:min-keyint={rate}:scenecut=0:threads=1"}
        sound = out.add_stream("aac", rate=48000, layout="mono") if voice else None
        for n in range(seconds * rate):
            frame = av.VideoFrame.from_ndarray((paint or picture)(n, rate, size), format="rgb24")
            frame.pts = n
            out.mux(video.encode(frame))
        out.mux(video.encode())
        if sound and voice:
            _speak(out, sound, voice)
    return path


def picture(n: int, rate: int, size: tuple[int, int]) -> np.ndarray:
    shot, (width, height) = n // (3 * rate), size
    y, x = np.mgrid[0:height, 0:width]
    plane = (x * (3 + shot) + y * (5 - shot % 3) + n * 2 + shot * 83) % 256
    return np.stack([plane, (plane + 60 * shot) % 256, 255 - plane], axis=2).astype(np.uint8)


def _speak(out: av.container.OutputContainer, sound: av.AudioStream, voice: Path) -> None:
    resampler = av.AudioResampler("fltp", "mono", 48000, frame_size=1024)
    at = 48000
    with av.open(str(voice)) as source:
        for frame in (*source.decode(audio=0), None):
            for piece in resampler.resample(frame):
                piece.pts, at = at, at + piece.samples
                out.mux(sound.encode(piece))
    out.mux(sound.encode())


def wait_for(what: Callable[[], bool], why: str) -> None:
    """Wait for something that must happen; a deadline far too long says when it does not."""
    over = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < over, why
        time.sleep(0.02)


def sights(n: int, rate: int, size: tuple[int, int]) -> np.ndarray:
    """Three seconds of a slide, three of a face, three of a cup, and the slide again."""
    return _photo(("slide.jpg", "astronaut.jpg", "coffee.jpg")[n // (3 * rate) % 3], size)


@functools.cache
def _photo(name: str, size: tuple[int, int]) -> np.ndarray:
    return resize(decode_jpeg((ROOT / "tests" / "media" / name).read_bytes()), *size)


@pytest.fixture(scope="session")
def toy_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty seconds, eight chunks at the least, no sound."""
    return draw(tmp_path_factory.mktemp("films") / "toy.mp4", 40)


@pytest.fixture(scope="session")
def spoken_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen seconds with eleven of speech."""
    return draw(tmp_path_factory.mktemp("films") / "spoken.mp4", 14, (160, 90), voice=VOICE)


SIGHT = "toy_join,segments,objects,faces,places"  # what is seen, and a toy that can be held at a gate


@pytest.fixture(scope="session")
def seen_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve seconds with speech, text, a face and a cup: every stage of the default recipe finds something."""
    return draw(tmp_path_factory.mktemp("films") / "seen.mp4", 12, (640, 360), voice=VOICE, paint=sights)
