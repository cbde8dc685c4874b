"""Which places settings mean: folders, buckets, and what a fleet is refused."""

from pathlib import Path

import pytest

from rushes.blobs.documents import address
from rushes.blobs.folder import FolderBlobs
from rushes.blobs.s3 import S3Blobs
from rushes.domain.errors import Refused
from rushes.settings import Settings
from rushes.sources.bucket import Bucket
from rushes.sources.folder import Folder
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
