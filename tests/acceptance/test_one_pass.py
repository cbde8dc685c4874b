"""The whole default recipe opens a film once for its pictures and once for its sound, and holds little of it."""

import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from rushes.domain.task import Lease
from rushes.engines import local
from rushes.engines.images import pixels
from rushes.engines.port import RATE, Jpeg, Pcm, Picture
from rushes.jobs.intake import missing_models
from rushes.library import JobRequest, Library
from rushes.media.reading import audio, frames, probe
from rushes.stages.speech.windows import speech_ranges
from tests.acceptance.conftest import ROOT, draw
from tests.acceptance.one_process import work

FAST = JobRequest(chunk="5", profile="fast")


@dataclass
class Counts:
    """What was opened in whose turn, and how many pictures models were shown, in all and at one time."""

    opened: Counter[tuple[str, str, int | None]] = field(default_factory=Counter)
    kinds: frozenset[str] = frozenset()
    turn: tuple[str, int | None] = ("", None)
    shown: int = 0
    alive: int = 0
    most: int = 0

    @contextmanager
    def watch(self, lease: Lease) -> Iterator[None]:
        """Remember whose turn it is."""
        self.turn = lease.stage, lease.chunk
        yield

    def opening(self, what: str, real: Any) -> Any:
        """Counts what is opened to be read."""

        def opened(*args: Any, **named: Any) -> Any:
            if named.get("mode", "r") == "r":
                self.opened[what, *self.turn] += 1
            return real(*args, **named)

        return opened

    def see(self, picture: Picture | Jpeg) -> Picture:
        """The pixels of a picture, which are there from now on until nobody holds them."""
        decoded = pixels(picture)
        self.shown, self.alive = self.shown + 1, self.alive + 1
        self.most = max(self.most, self.alive)
        weakref.finalize(decoded, self._gone)
        return decoded

    def _gone(self) -> None:
        self.alive -= 1


@pytest.fixture(scope="module")
def counts(seen_film: Path, tmp_path_factory: pytest.TempPathFactory) -> Counts:
    """The default recipe on three chunks, in one process."""
    counts = Counts()
    with Library(tmp_path_factory.mktemp("home")) as library, pytest.MonkeyPatch.context() as patch:
        library.models.pull(missing_models(library.home, FAST))
        library.add([seen_film], FAST)
        for module, name in (
            (av, "open"),
            (frames, "video_stream"),
            (probe, "video_stream"),
            (audio, "audio_stream"),
        ):
            patch.setattr(module, name, counts.opening(name, getattr(module, name)))
        patch.setattr(local, "pixels", counts.see)
        work(library.home, counts.watch)
        (video,) = library.videos.page()[0]
        counts.kinds = frozenset(kind for kind, _, _ in library.home.index.state("me", video.id).shown)
    return counts


def test_every_stage_found_something(counts: Counts) -> None:
    assert counts.kinds >= {"speech", "text", "entity", "object", "face", "place"}


def test_pictures_are_decoded_once_per_chunk_and_sound_once_per_video(counts: Counts) -> None:
    read = {who: n for who, n in counts.opened.items() if who[1] != "probe"}
    expected: dict[tuple[str, str, int | None], int] = {(what, "audio", None): 1 for what in ("open", "audio_stream")}
    expected |= {(what, "develop", chunk): 1 for what in ("open", "video_stream") for chunk in range(3)}
    assert read == expected


def test_one_picture_is_held_at_a_time(counts: Counts) -> None:
    assert counts.shown >= 4 * 4, "each stage that sees looked at each sight"
    assert counts.most <= 2, "the one that is looked at, and the next as it takes its place"


_SLOT = """
import resource, sys
from rushes.library import JobRequest, Library
from tests.acceptance.one_process import work
with Library(sys.argv[1]) as library:
    library.add([sys.argv[2]], JobRequest(only=("shots",), chunk="10"))
    work(library.home)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def _peak(folder: Path, seconds: int) -> int:
    """Megabytes that a process held at most which did all work of a film."""
    film = draw(folder / f"{seconds}.mp4", seconds, (256, 144), rate=5)
    argv = [sys.executable, "-c", _SLOT, str(folder / f"home{seconds}"), str(film)]
    done = subprocess.run(argv, check=True, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}, capture_output=True)
    return int(done.stdout)


def test_a_film_ten_times_as_long_needs_no_more_memory(tmp_path: Path) -> None:
    short, long = _peak(tmp_path, 10), _peak(tmp_path, 200)  # measured: 87 and 90 MB at 80 seconds
    whole = 200 * 5 * 256 * 144 * 3 // 2**20  # megabytes of its pictures: 105, never there at once
    assert long < short + whole // 2


def test_however_long_the_sound_is_it_is_heard_piece_by_piece() -> None:
    asked: list[int] = []

    def read(start: int, end: int) -> Pcm:
        asked.append(end - start)
        return np.zeros(1, np.float32)  # what is in it does not matter here

    day = 24 * 3600 * RATE
    speech_ranges(day, read, lambda _pcm: [])
    assert sum(asked) >= day
    assert max(asked) <= 11 * 60 * RATE
