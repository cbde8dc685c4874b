"""Servers that several tests share."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rushes.library import JobRequest, Library
from tests.acceptance.conftest import draw
from tests.api.kit import Serving, serving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def server(home: Path) -> Iterator[Serving]:
    with serving(home, sources=tempfile.gettempdir()) as running:  # films of tests may be added
        yield running


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds, three shots, no sound."""
    return draw(tmp_path_factory.mktemp("api_films") / "three shots <b>.mp4", 6)


@pytest.fixture(scope="session")
def developed_home(tmp_path_factory: pytest.TempPathFactory, film: Path) -> Path:
    """A home in which the film was developed; nobody works in it."""
    home = tmp_path_factory.mktemp("developed") / "home"
    with Library(home) as library:
        assert library.run([film], JobRequest(only=("playlist", "shots")), slots=2).exit_code == 0
    return home


@pytest.fixture
def developed(tmp_path: Path, developed_home: Path) -> Iterator[Serving]:
    """A server over a copy of it: what a test does there, the next one does not see."""
    home = tmp_path / "developed"
    shutil.copytree(developed_home, home)
    with serving(home, sources=tempfile.gettempdir()) as running:
        yield running
