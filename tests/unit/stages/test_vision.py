"""The stages that see, on films with known pictures: right, or honestly empty."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from rushes.domain.observation import Observation
from rushes.engines.models.vision import unpack_embeddings
from rushes.engines.port import Picture
from rushes.stages.develop import Develop
from rushes.stages.faces import Faces
from rushes.stages.probe import Probe
from tests.unit.film_work import FilmWork
from tests.unit.media_files import Film, make
from tests.unit.vision_films import MODELS, SEEING, SLIDE, eyes, film_of, photo, plain, seen

ALL = tuple(SEEING)


def framed(name: str) -> Picture:
    """A photograph on black, 1280 x 720."""
    canvas, picture = plain(0, (1280, 720)), photo(name)
    canvas[100 : 100 + picture.shape[0], 200 : 200 + picture.shape[1]] = picture
    return canvas


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slide, a cup, a face, a slide: 3 + 2 + 2 + 3 s, with black between."""
    shots = [
        (photo("slide.jpg"), 30),
        (framed("coffee.jpg"), 20),
        (framed("astronaut.jpg"), 20),
        (plain(0, (1280, 720)), 10),
    ]
    return film_of(tmp_path_factory.mktemp("album") / "album.mp4", [*shots, (photo("slide.jpg"), 30)])


@pytest.fixture(scope="module")
def once(album: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Observation]]:
    return seen(album, tmp_path_factory.mktemp("once"), ALL)


def times(rows: list[Observation], text: str) -> list[tuple[int, int]]:
    return [(r.span.start_us // 1000, r.span.end_us // 1000) for r in rows if r.text == text]


def test_text_is_seen_for_exactly_the_time_that_it_is_shown(once: dict[str, list[Observation]]) -> None:
    texts = [r for r in once["segments"] if r.kind == "text"]
    assert sorted({r.text for r in texts}) == sorted(SLIDE)
    for line in SLIDE:
        assert times(texts, line) == [(0, 3000), (8000, 11_000)]
    assert times([r for r in once["segments"] if r.kind == "entity"], "18%") == [(0, 3000), (8000, 11_000)]
    assert all(r.language == "en" and len(r.extra["polygon"]) == 4 for r in texts)


def test_things_and_faces_are_seen_where_they_are(once: dict[str, list[Observation]]) -> None:
    assert times(once["objects"], "cup")[0][0] == 3000
    assert times(once["objects"], "cup")[-1][1] == 5000
    spans = [(r.span.start_us // 1000, r.span.end_us // 1000) for r in once["faces"]]
    assert (spans[0][0], spans[-1][1]) == (5000, 7000)
    assert all(r.box and 0.1 < r.box[0] < 0.4 and r.extra["row"] == n for n, r in enumerate(once["faces"]))


def test_nobody_knows_where_a_slide_was_taken(once: dict[str, list[Observation]]) -> None:
    assert {r.text for r in once["places"]} == {"unknown"}
    assert all(len(r.extra["top"]) == 5 for r in once["places"])


@pytest.mark.parametrize("seconds", [5, 10])
def test_what_is_seen_does_not_depend_on_the_grid(
    album: Path, tmp_path: Path, once: dict[str, list[Observation]], seconds: int
) -> None:
    again = seen(album, tmp_path, ALL, seconds=seconds)
    again["faces"], whole = _without_rows(again["faces"]), _without_rows(once["faces"])
    assert again == {**once, "faces": whole}


def _without_rows(rows: list[Observation]) -> list[Observation]:
    """Rows count from the chunk's beginning."""
    return [Observation(r.kind, r.span, r.text, r.confidence, box=r.box) for r in rows]


@pytest.mark.parametrize("rotation", [90, 180])
def test_a_film_that_lies_on_its_side_is_seen_upright(tmp_path: Path, rotation: int) -> None:
    turned = np.ascontiguousarray(np.rot90(photo("slide.jpg"), -rotation // 90))
    film = film_of(tmp_path / "turned.mp4", [(turned, 10)], rotation=rotation)
    texts = [r.text for r in seen(film, tmp_path, ["read_text"])["segments"] if r.kind == "text"]
    assert texts == list(SLIDE)


def test_one_frame_is_enough(tmp_path: Path) -> None:
    found = seen(film_of(tmp_path / "one.mp4", [(photo("slide.jpg"), 1)]), tmp_path, ["read_text", "objects"])
    assert [r.text for r in found["segments"] if r.kind == "text"] == list(SLIDE)


def test_black_and_noise_give_nothing(tmp_path: Path) -> None:
    noise = np.random.default_rng(5).integers(0, 256, (360, 640, 3), dtype=np.uint8)
    found = seen(film_of(tmp_path / "x.mp4", [(plain(0), 20), (noise, 20), (plain(255), 20)]), tmp_path, ALL)
    assert found["segments"] == found["faces"] == []
    assert {r.text for r in found["places"]} == {"unknown"}


def test_sound_alone_gives_empty_results(tmp_path: Path) -> None:
    found = seen(make(tmp_path / "x.m4a", Film([], tone=Fraction(1))), tmp_path, ALL)
    assert set(map(len, found.values())) == {0}


def test_directions_of_faces_lie_beside_them_row_by_row(tmp_path: Path) -> None:
    film = film_of(tmp_path / "x.mp4", [(framed("astronaut.jpg"), 12), (framed("coffee.jpg"), 12)])
    work = FilmWork(film, tmp_path, engine=eyes(), models=MODELS)
    work.run(Probe())
    span = work.facts.video.span if work.facts.video else None
    work.run(Develop(), span, wanted=["frames"])
    saved = work.run(Faces(), span)["faces"]
    kept = unpack_embeddings(work.made["faces.faces"][0].bytes("embeddings.f16"), int(saved.facts["dimensions"]))
    assert kept.shape == (saved.count, 128)
    assert np.allclose(np.linalg.norm(kept, axis=1), 1, atol=0.01)
