from fractions import Fraction
from pathlib import Path

import pytest

from rushes.stages.develop import Develop
from rushes.stages.probe import Probe
from rushes.stages.shots import Shots
from tests.unit.film_work import FilmWork, chunks
from tests.unit.media_files import Film, cfr, make


@pytest.mark.parametrize("seconds", [5, 60])
def test_shots_are_saved_in_ticks_and_microseconds(seconds: int, tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(7), cuts=[50, 125], size=(320, 240)))
    work = FilmWork(film, tmp_path)
    work.run(Probe())
    for span in chunks(work.facts, seconds):
        work.run(Develop(), span, wanted=["metrics"])
    saved = work.run(Shots())
    assert saved["shots"].count == 3
    assert work.made["shots.shots"][0].json("shots.json") == [
        {"start": 0, "end": 25600, "start_us": 0, "end_us": 2_000_000, "kind": "start"},
        {"start": 25600, "end": 64000, "start_us": 2_000_000, "end_us": 5_000_000, "kind": "cut"},
        {"start": 64000, "end": 89600, "start_us": 5_000_000, "end_us": 7_000_000, "kind": "cut"},
    ]


def test_sound_alone_has_no_shots(tmp_path: Path) -> None:
    work = FilmWork(make(tmp_path / "x.m4a", Film([], tone=Fraction(1))), tmp_path)
    work.run(Probe())
    work.run(Develop())
    work.run(Shots())
    assert work.made["shots.shots"][0].json("shots.json") == []
