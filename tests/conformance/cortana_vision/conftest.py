"""The client of this document: a film with text goes through its pipeline on PostgreSQL, read by Tesseract."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import Site, Sites
from tests.unit.vision_films import film_of, photo

OPTIONS = {
    "develop": {"target_fps": 5, "dedupe_threshold": 0.95},
    "playlist": {"segments": "ts"},
    "read_text": {"languages": ["eng", "deu"], "min_confidence": 0.6, "engine": "tesseract"},
}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A film that went through it."""

    site: Site
    video: str
    run: str

    def get(self, place: str, status: int = 200, **query: str) -> Any:
        """What a program is answered."""
        answer = self.site.http.get(place, params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    def job(self, type: str) -> Mapping[str, Any]:
        """The job of a type."""
        (only,) = self.get(f"/videos/{self.video}/jobs", job_type=type)
        return only  # type: ignore[no-any-return]

    def names(self, prefix: str) -> list[str]:
        """What is published below a prefix."""
        with self.site.library() as library:
            return sorted(library.home.blobs.keys(prefix))


def send(site: Site, film: Path, frames: int, **request: Any) -> tuple[str, str]:
    """Take a film in by the API and wait for its job; answers its video and its job."""
    film_of(film, [(photo("slide.jpg"), frames)])
    answer = site.http.post("/api/v1/videos", json={"paths": [str(film)], **request})
    assert answer.status_code == 202, answer.text
    job = answer.json()[0]["job"]["id"]
    site.wait_for_job(job)
    return site.http.get(f"/api/v1/jobs/{job}").json()["video"], job


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("films")


@pytest.fixture(scope="session")
def site(sites: Sites, films: Path) -> Site:
    return sites("cortana_vision", "postgres", sources=str(films))


@pytest.fixture(scope="session")
def pipeline(site: Site, films: Path) -> Pipeline:
    return Pipeline(site, *send(site, films / "slide.mp4", 30, recipe="text", options=OPTIONS))
