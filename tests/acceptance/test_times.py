"""Film time counts from the first moment that is shown or heard, wherever the clock of the file begins."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import av
import pytest

from rushes.library import JobRequest, Library
from tests.acceptance.conftest import VOICE, picture

TICKS = 90_000
TURN = 2**33  # where the clock of a transport stream begins again
CLOCKS = {"one second": TICKS, "ten seconds": 10 * TICKS, "before zero": TURN - 2 * TICKS}
RATE, SIZE, SECONDS = 10, (160, 90), 13

WISH = JobRequest(only=("playlist", "shots", "transcript"), profile="fast", language="en")
Developed = Callable[[str], tuple[Library, str]]


def draw(path: Path, begin: int) -> Path:
    """A transport stream that begins at that tick: a cut every three seconds, a voice from second 1 on."""
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt, video.codec_context.gop_size = *SIZE, "yuv420p", RATE
        video.codec_context.time_base = Fraction(1, TICKS)
        video.options = {"x264-params": f"keyint={RATE}:min-keyint={RATE}:scenecut=0:threads=1:bframes=0"}
        sound = out.add_stream("aac", rate=48000, layout="mono")
        assert isinstance(sound, av.AudioStream)
        for n in range(SECONDS * RATE):
            frame = av.VideoFrame.from_ndarray(picture(n, RATE, SIZE), format="rgb24")
            frame.pts, frame.time_base = begin + n * TICKS // RATE, Fraction(1, TICKS)
            out.mux(video.encode(frame))
        out.mux(video.encode())
        resampler = av.AudioResampler("fltp", "mono", 48000, frame_size=1024)
        at = (begin + TICKS) * 48000 // TICKS
        with av.open(str(VOICE)) as source:
            for heard in (*source.decode(audio=0), None):
                for piece in resampler.resample(heard):
                    piece.pts, at = at, at + piece.samples
                    out.mux(sound.encode(piece))
        out.mux(sound.encode())
    return path


@pytest.fixture(scope="module")
def developed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Developed]:
    """The film with that clock, developed in a home of its own the first time it is asked for."""
    with ExitStack() as opened:
        done: dict[str, tuple[Library, str]] = {}

        def film(clock: str) -> tuple[Library, str]:
            if clock not in done:
                folder = tmp_path_factory.mktemp("times")
                library = opened.enter_context(Library(folder / ".rushes"))
                ran = library.run([draw(folder / "film.ts", CLOCKS[clock])], WISH)
                assert ran.exit_code == 0
                done[clock] = library, json.loads(ran.jobs[0].facts)["video"]
            return done[clock]

        yield film


def told(library: Library, video: str) -> dict[str, object]:
    """Everything that says when something happens."""
    (hit,) = library.search('"can do for you"').hits
    clip = library.clip(video, hit.start_us, hit.end_us, 0)
    with av.open(str(clip.path)) as made:
        frames = [frame.to_ndarray(format="gray8").mean() for frame in made.decode(video=0)]
    exports = {
        kind: library.videos.export(library.videos.find(video), kind)
        for kind in ("srt", "vtt", "json", "words", "chapters.vtt", "edl")
    }
    said = [(line.text, line.span.start_us // 1000) for line in library.videos.lines(video)]
    return {
        "hit": hit.start_us // 1000,
        "shots": library.videos.shots(library.videos.find(video)),
        "frames": frames,
        "said": said,
        **exports,
    }


@pytest.mark.parametrize("clock", ["ten seconds", "before zero"])
def test_the_same_film_with_another_clock_has_the_same_times(clock: str, developed: Developed) -> None:
    usual, odd = told(*developed("one second")), told(*developed(clock))
    assert odd["shots"] == usual["shots"]
    assert odd == usual


def test_the_first_picture_is_zero_and_words_are_where_they_are_heard(developed: Developed) -> None:
    library, video = developed("ten seconds")
    assert library.videos.shots(library.videos.find(video))[0] == (0, 3_000_000)
    (hit,) = library.search("country AND ask").hits[:1]
    assert 4_000_000 < hit.start_us < 12_000_000
    srt = library.videos.export(library.videos.find(video), "srt").decode()
    first = re.search(r"^00:00:(\d\d),", srt, re.MULTILINE)
    assert first
    assert 1 <= int(first[1]) <= 2
