"""A process whose results are elsewhere than those of its store is refused, and says why."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rushes.bucket.location import BucketLocation
from rushes.domain.errors import WrongHome
from rushes.library import Library
from rushes.servers.process import Running
from rushes.surfaces.cli.main import main
from tests.api.kit import serving

Make = Callable[[str, str], Path]


@pytest.fixture
def home(tmp_path: Path, aws_server: Running, ministack_s3: BucketLocation) -> Make:
    """A home of one store on AWS, with results below a prefix."""

    def make(name: str, blobs: str) -> Path:
        s3, folder = ministack_s3, tmp_path / name
        folder.mkdir(0o700)
        lines = {"store": f"dynamodb://{tmp_path.name}", "aws_endpoint": aws_server.url, "blobs": blobs,
                 "s3_endpoint": s3.endpoint, "s3_key": s3.key, "s3_secret": s3.secret}  # fmt: skip
        (folder / "rushes.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in lines.items()))
        return folder

    return make


def rushes(home: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *args])


def test_a_worker_with_other_results_is_refused(home: Make, tmp_path: Path) -> None:
    place = f"s3://rushes/{tmp_path.name}"
    first = home("first", place)
    assert rushes(first, "worker", "--until-idle").exit_code == 0
    assert rushes(home("second", place), "worker", "--until-idle").exit_code == 0
    stranger = home("stranger", f"{place}-mistyped")
    for command in (["worker", "--until-idle"], ["gc"], ["verify"], ["run", str(tmp_path / "film.mp4")]):
        shown = rushes(stranger, *command)
        assert shown.exit_code == WrongHome.exit_code, (command, shown.output)
        assert "does not have the results of this store" in " ".join(shown.stderr.split())
    checked = rushes(stranger, "doctor")
    assert checked.exit_code == 1
    assert "does not have the results of this store" in " ".join(checked.stdout.split())
    with serving(stranger) as server:
        ready = server.http.get("/readyz")
        assert (ready.status_code, "results of this store" in ready.text) == (503, True)
    assert rushes(stranger, "init", "--take-over").exit_code == 0
    assert rushes(stranger, "worker", "--until-idle").exit_code == 0


def test_a_folder_that_is_not_mounted_is_refused(tmp_path: Path) -> None:
    with Library(tmp_path / "home") as library:
        assert library.home.blobs
    (tmp_path / "home" / "files").rename(tmp_path / "elsewhere")
    with Library(tmp_path / "home") as library:
        assert library.home.blobs, "in its own home a folder that was deleted is begun again"
    options = {"blobs": ("s3://other/place", "a test"), "s3_endpoint": ("http://127.0.0.1:9", "a test")}
    with Library(tmp_path / "home", options=options) as library:
        assert library.settings.blobs, "nothing is asked before it is needed"
