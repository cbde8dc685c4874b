"""A sentence finds what is seen, where a pair of nets for pictures and texts is configured, and nowhere else."""

from pathlib import Path

import numpy as np
import pytest

from rushes.domain.errors import Refused
from rushes.domain.job import JobState
from rushes.library import JobRequest, Library
from tests.acceptance.conftest import draw
from tests.acceptance.test_inference import manifests
from tests.api.kit import serving
from tests.tiny_pair import write_pair
from tests.unit.vision_films import eyes

FOUND = {"~red": (0, 3), "~blue": (3, 6), "picture:~blue": (3, 6), "picture:~red before picture:~blue": (0, 6)}
PICTURES = JobRequest(only=("pictures",), chunk="3")


def coloured(n: int, rate: int, size: tuple[int, int]) -> np.ndarray:
    """Three seconds of red stripes, and three of blue ones that lie across them."""
    width, height = size
    picture, is_red = np.zeros((height, width, 3), np.uint8), n < 3 * rate
    stripes = (np.arange(height if is_red else width) // 6) % 2 * 255
    picture[..., 0 if is_red else 2] = stripes[:, None] if is_red else stripes[None, :]
    return picture


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    eyes()._store.pull(["minilm-l6"])  # sentences are compared as well
    return draw(tmp_path_factory.mktemp("colours") / "colours.mp4", 6, paint=coloured)


def test_a_sentence_finds_the_moments_that_show_it(film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = write_pair(tmp_path / "pair")
    monkeypatch.setenv("RUSHES_PICTURES_MODEL", str(pair))
    with serving(tmp_path / "home") as server:
        library = server.library
        assert "pictures" in library.recipes()["searchable"]
        assert library.run([film], PICTURES).exit_code == 0
        (job,) = library.jobs.page(JobState.COMPLETED).rows
        (made, *_) = [m for (stage, _, _), m in manifests(library, job.id).items() if stage == "pictures"]
        assert made.provenance.models == (library.home.models.name_of(pair),)
        for query, seconds in FOUND.items():
            hits = library.search(query).hits
            assert {hit.kind for hit in hits} == {"picture"}
            assert all(seconds[0] <= hit.start_us / 10**6 < hit.end_us / 10**6 <= seconds[1] for hit in hits), query
            assert {hit.text for hit in hits} == {"picture"}
        for query in ("~green", "red", "picture", "say:~red", "~red kind:speech"):
            assert not library.search(query).hits, query
        assert {hit.text for hit in library.search("picture:*").hits} == {"picture"}, "no numbers are shown"
        assert [hit["kind"] for hit in server.get("/api/v1/search", params={"q": "~red"})["hits"]][:1] == ["picture"]
        (pair / "pictures.toml").write_text("least = 0.1\n")
    with Library(tmp_path / "home") as library:
        assert not library.search("~red").hits, "what another pair made is not compared"


def test_without_a_pair_no_picture_is_embedded_and_it_is_said_how(
    film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library(tmp_path / "home") as library:
        assert "pictures" not in library.recipes()["everything"]
        with pytest.raises(Refused, match="pictures needs a model") as refused:
            library.add([film], PICTURES)
        assert "pictures_model" in refused.value.advice
    monkeypatch.setenv("RUSHES_PICTURES_MODEL", str(tmp_path / "none"))
    with Library(tmp_path / "home") as library:
        assert not library.search("~red").hits, "a folder that is not there fails no search"
