"""The site on which the client of this document runs: DynamoDB, SQS and S3, as the document has it."""

import subprocess
from pathlib import Path

import pytest

from tests.acceptance.conftest import draw
from tests.api.kit import PROGRAM
from tests.conformance.conftest import Site, Sites


@pytest.fixture(scope="session")
def site(sites: Sites) -> Site:
    return sites("airunner", "aws")


@pytest.fixture(scope="session")
def job(site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job that is done: a film without sound, whose transcript is empty."""
    add(site, draw(tmp_path_factory.mktemp("films") / "silent.mp4", 2))
    (found,) = site.http.get("/api/v1/jobs").json()["items"]
    site.wait_for_job(found["id"])
    return str(found["id"])


def add(site: Site, film: Path) -> None:
    """Put a film into the queue; it goes to the bucket, since what only one machine sees is found by looking."""
    argv = [*PROGRAM, "--home", str(site.home), "add", "--upload", str(film), "--recipe", "subtitles"]
    subprocess.run(argv, check=True, capture_output=True)
