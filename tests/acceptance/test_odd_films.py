"""Films of every odd kind through the whole default recipe: right or honestly empty, never an error or an invention."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from rushes.domain.job import JobState
from rushes.domain.observation import Observation
from rushes.jobs.intake import missing_models
from rushes.library import JobRequest, Library
from tests.acceptance.conftest import sights
from tests.acceptance.one_process import work

FAST = JobRequest(profile="fast")
RATE = 16000
TITLE = "Quarterly Results 2025"
NTSC = Fraction(24000, 1001)

Sound = np.ndarray


def film(
    path: Path,
    times: Sequence[Fraction],
    picture: np.ndarray | None = None,
    sound: Sound | None = None,
    rotation: int = 0,
    rate: Fraction = Fraction(10),
) -> None:
    """A still picture at these moments (black if there is none), and a sound."""
    still = np.zeros((360, 640, 3), np.uint8) if picture is None else picture
    base = Fraction(1, 240000)
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=rate, options={"crf": "20", "x264-params": "keyint=30:threads=1"})
        video.height, video.width = still.shape[:2]
        video.pix_fmt, video.codec_context.time_base = "yuv420p", base
        if rotation:
            video.set_display_rotation(rotation)
        voice = out.add_stream("aac", rate=RATE, layout="mono") if sound is not None else None
        for time in times:
            frame = av.VideoFrame.from_ndarray(still, format="rgb24")
            frame.pts, frame.time_base = int(time / base), base
            out.mux(video.encode(frame))
        out.mux(video.encode())
        if voice is not None and sound is not None:
            _play(out, voice, sound)


def _play(out: av.container.OutputContainer, voice: av.AudioStream, sound: Sound) -> None:
    for at in range(0, len(sound), 1024):
        frame = av.AudioFrame.from_ndarray(sound[None, at : at + 1024], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, at, Fraction(1, RATE)
        out.mux(voice.encode(frame))
    out.mux(voice.encode())


def _steady(seconds: float, rate: Fraction) -> list[Fraction]:
    return [n / rate for n in range(round(seconds * rate))]


def _uneven(seconds: int) -> list[Fraction]:
    """Phones in the dark: steps of 1/30, 1/24 and 1/15 s by turns, and one of half a second."""
    times, steps = [Fraction(0)], (Fraction(1, 30), Fraction(1, 24), Fraction(1, 15))
    while times[-1] < seconds:
        times.append(times[-1] + (Fraction(1, 2) if len(times) == 20 else steps[len(times) % 3]))
    return times


def _music(seconds: int) -> Sound:
    """Chords that change every half second, with a beat."""
    t = np.arange(seconds * RATE) / RATE
    roots = np.array([220.0, 261.6, 329.6, 196.0])[(t * 2).astype(int) % 4]
    chord = sum(np.sin(2 * np.pi * roots * part * t) for part in (1, 1.25, 1.5))
    return np.asarray(6000 * chord * np.exp(-6 * (t * 4 % 1)), np.int16)


def _noise(seconds: int) -> Sound:
    return np.random.default_rng(7).integers(-9000, 9000, seconds * RATE, dtype=np.int16)


def _slide(size: tuple[int, int] = (640, 360)) -> np.ndarray:
    return sights(0, 30, size)


TEN = _steady(2, Fraction(10))
FILMS: dict[str, Callable[[Path], None]] = {
    "silence": lambda p: film(p, TEN, _slide(), np.zeros(4 * RATE, np.int16)),
    "music": lambda p: film(p, TEN, None, _music(8)),
    "noise": lambda p: film(p, TEN, None, _noise(8)),
    "black": lambda p: film(p, TEN),
    "no_audio": lambda p: film(p, TEN, _slide()),
    "five_seconds": lambda p: film(p, _steady(5, Fraction(25)), _slide(), rate=Fraction(25)),
    "one_frame": lambda p: film(p, [Fraction(0)], _slide()),
    "four_to_three": lambda p: film(p, TEN, _slide((640, 480))),
    "rotated": lambda p: film(p, TEN, np.ascontiguousarray(np.rot90(_slide(), -1)), rotation=90),
    "at_23976": lambda p: film(p, _steady(4, NTSC), _slide(), rate=NTSC),
    "uneven": lambda p: film(p, _uneven(4), _slide()),
}
READ = [name for name in FILMS if name not in {"music", "noise", "black"}]
SECONDS = {
    "five_seconds": Fraction(5),
    "at_23976": 96 / NTSC,
    **dict.fromkeys(("no_audio", "four_to_three", "rotated"), Fraction(2)),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("odd")
    for name, draw in FILMS.items():
        draw(folder / f"{name}.mp4")
    with Library(folder / ".rushes") as library:
        library.models.pull(missing_models(library.home, FAST))
        library.add([folder / f"{name}.mp4" for name in FILMS], FAST)
        work(library.home)
        yield library


def _seen(library: Library, name: str, kind: str) -> tuple[Observation, ...]:
    return library.home.index.lines("me", library.videos.find(f"{name}.mp4").id, kind)


def test_none_of_them_is_an_error(library: Library) -> None:
    assert [j.name for j in library.jobs.page().rows if j.state is not JobState.COMPLETED] == []
    assert library.summary().videos == len(FILMS)


@pytest.mark.parametrize("name", FILMS)
def test_nothing_is_heard_where_nobody_speaks(library: Library, name: str) -> None:
    assert _seen(library, name, "speech") == ()


@pytest.mark.parametrize("name", ["music", "noise", "black"])
def test_nothing_is_read_and_nobody_seen_in_the_dark(library: Library, name: str) -> None:
    found = [line for kind in ("text", "entity", "face", "object") for line in _seen(library, name, kind)]
    assert found == []
    assert {line.text for line in _seen(library, name, "place")} == {"unknown"}


@pytest.mark.parametrize("name", READ)
def test_a_slide_is_read_for_all_of_its_time(library: Library, name: str) -> None:
    (title,) = [line for line in _seen(library, name, "text") if line.text == TITLE]
    assert title.span.start == 0
    if name in SECONDS:
        assert title.span.end * title.span.base == SECONDS[name]


def test_uneven_times_are_kept_to_the_tick(library: Library) -> None:
    (shot,) = library.videos.shots(library.videos.find("uneven.mp4"))
    times = _uneven(4)
    ends = {int((times[-1] + step) * 1_000_000) for step in {b - a for a, b in pairwise(times)}}
    assert shot[0] == 0
    assert shot[1] in ends
