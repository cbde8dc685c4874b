from pathlib import Path

import pytest

from rushes.domain.errors import SourceChanged
from rushes.media.reading.probe import probe
from rushes.stages.probe import Probe
from tests.unit.film_work import FilmWork
from tests.unit.media_files import plain


def test_probe_saves_its_facts(tmp_path: Path) -> None:
    film = plain(tmp_path / "x.mp4", 1)
    work = FilmWork(film, tmp_path)
    work.run(Probe())
    assert work.facts == probe(film)


def test_a_file_that_changed_since_it_was_taken_in_is_not_worked_on(tmp_path: Path) -> None:
    film = plain(tmp_path / "x.mp4", 1)
    work = FilmWork(film, tmp_path)
    work.taken = film.stat()
    with film.open("ab") as f:
        f.write(b"more")
    with pytest.raises(SourceChanged):
        work.run(Probe())
