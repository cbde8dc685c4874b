"""Which places settings mean: folders, buckets, and what a fleet is refused."""

from pathlib import Path

import pytest

from rushes.blobs.documents import address
from rushes.blobs.folder import FolderBlobs
from rushes.blobs.s3 import S3Blobs
from rushes.domain.errors import Refused, WrongHome
from rushes.settings import Settings
from rushes.sources.bucket import Bucket
from rushes.sources.folder import Folder
from rushes.wiring.aws_client import service_of
from rushes.wiring.local import LocalSetup
from rushes.wiring.setup import blobs_of


def test_a_fleet_is_refused_a_folder_that_it_does_not_see(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot read"):
        blobs_of(Settings(), tmp_path, fleet=True)
    assert isinstance(blobs_of(Settings(shared=True), tmp_path, fleet=True), FolderBlobs)
    assert isinstance(blobs_of(Settings(), tmp_path), FolderBlobs)


def test_a_bucket_serves_everybody(tmp_path: Path) -> None:
    blobs = blobs_of(Settings(blobs="s3://films/home", s3_endpoint="http://127.0.0.1:9"), tmp_path, fleet=True)
    assert isinstance(blobs, S3Blobs)
    assert address(blobs, "thumbs/v/poster.jpg") == "s3://films/home/thumbs/v/poster.jpg"


def test_a_place_is_a_bucket_or_a_folder(tmp_path: Path) -> None:
    assert isinstance(LocalSetup(Settings(), tmp_path).source("s3://films/2024"), Bucket)
    assert LocalSetup(Settings(), tmp_path).source(str(tmp_path)) == Folder(tmp_path)
    with pytest.raises(Refused):
        LocalSetup(Settings(), tmp_path).source("s3://")


def test_the_results_of_a_home_are_no_footage_of_its_bucket(tmp_path: Path) -> None:
    setup = LocalSetup(Settings(blobs="s3://films/home/"), tmp_path)
    places = [setup.source(place) for place in ("s3://films", "s3://films/home", "gs://films", "s3://other/home")]
    own = [place.own for place in places if isinstance(place, Bucket)]
    assert "home/videos/proxy/" in own[0]
    assert own == [own[0], own[0], (), ()]


@pytest.mark.parametrize(
    ("variables", "endpoint", "region"),
    [({"AWS_REGION": "eu-central-1"}, "", "eu-central-1"),
     ({"AWS_DEFAULT_REGION": "eu-west-1"}, "", "eu-west-1"),
     ({"AWS_REGION": "eu-central-1"}, "http://127.0.0.1:9", "eu-central-1"),
     ({}, "http://127.0.0.1:9", "us-east-1")],
)  # fmt: skip
def test_the_region_is_read_as_the_guide_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], endpoint: str, region: str
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    service = service_of(Settings(aws_endpoint=endpoint, s3_key="k", s3_secret="s"), "dynamodb")
    assert service.region == region
    service.close()


def test_without_a_region_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(WrongHome, match="no region") as no:
        service_of(Settings(), "dynamodb")
    assert no.value.advice == "Set AWS_REGION."
