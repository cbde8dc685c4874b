"""Results in a bucket, and films in one: the whole recipe through a real S3, to the byte as in a folder."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rushes.blobs.documents import address
from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.domain.keys import blob_key
from rushes.library import JobRequest, Library

FAST = JobRequest(chunk="5", profile="fast")


def _home(folder: Path, place: BucketLocation, blobs: str = "") -> Path:
    folder.mkdir(parents=True)
    lines = {"blobs": blobs, "s3_endpoint": place.endpoint, "s3_key": place.key, "s3_secret": place.secret}
    (folder / "rushes.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in lines.items()))
    return folder


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory, spoken_film: Path) -> set[str]:
    """The blobs of a run in a folder."""
    with Library(tmp_path_factory.mktemp("near") / "home") as library:
        assert library.run([spoken_film], FAST).exit_code == 0
        return _artifacts(library)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory, spoken_film: Path, seaweed_s3: BucketLocation) -> Iterator[Library]:
    """A home whose results are in a bucket, with a film that is in one as well; beside it, what the run made."""
    connect(replace(seaweed_s3, prefix="films")).put("a film.mp4", spoken_film)
    home = _home(tmp_path_factory.mktemp("far") / "home", seaweed_s3, f"s3://{seaweed_s3.bucket}/home")
    with Library(home) as library:
        assert library.run([f"s3://{seaweed_s3.bucket}/films"], FAST).exit_code == 0
        (home.parent / "made").write_text("\n".join(_artifacts(library)))
        yield library


def _artifacts(library: Library) -> set[str]:
    owner, blobs = library.home.settings.owner, library.home.blobs
    return {key.rpartition("/")[2] for key in blobs.keys(f"blobs/{owner}/")}


def test_a_bucket_holds_the_same_blobs_as_a_folder(far: Library, near: set[str]) -> None:
    assert set((far.home.folder.parent / "made").read_text().split()) == near
    owner = far.home.settings.owner
    assert all(far.home.blobs.verify(owner, sha256) for sha256 in near)


def test_nothing_of_the_results_is_in_the_home(far: Library) -> None:
    kept = {path.name for path in far.home.folder.iterdir()}
    assert "files" not in kept


def test_words_are_found_and_names_are_published(far: Library, seaweed_s3: BucketLocation) -> None:
    (hit,) = far.search('"can do for you"').hits
    assert 6_000_000 < hit.start_us < hit.end_us < 11_000_000
    ((video,), _) = far.videos.page()
    assert (video.name, video.path) == ("a film.mp4", f"s3://{seaweed_s3.bucket}/films/a film.mp4")
    assert connect(replace(seaweed_s3, prefix="home")).get(video.proxy).bytes().to_bytes().startswith(b"#EXTM3U")
    assert address(far.home.blobs, video.proxy) == f"s3://{seaweed_s3.bucket}/home/{video.proxy}"


def test_a_clip_is_cut_from_a_film_in_a_bucket(far: Library, tmp_path: Path) -> None:
    far.clip("a film.mp4", 2_000_000, 4_000_000, out=tmp_path / "clip.mp4")
    assert (tmp_path / "clip.mp4").stat().st_size > 1000


def test_a_timeline_names_the_address_of_a_film_in_a_bucket(far: Library, seaweed_s3: BucketLocation) -> None:
    timeline = far.videos.export(far.videos.find("a film.mp4"), "otio").decode()
    assert f'"target_url": "s3://{seaweed_s3.bucket}/films/a%20film.mp4"' in timeline


def test_the_same_film_again_is_the_same_job(far: Library, seaweed_s3: BucketLocation) -> None:
    ran = far.run([f"s3://{seaweed_s3.bucket}/films/a film.mp4"], FAST)
    assert ran.exit_code == 0
    assert len(far.videos.page()[0]) == 1


def test_a_blob_damaged_in_the_bucket_is_found_and_made_again(far: Library, seaweed_s3: BucketLocation) -> None:
    owner, bucket = far.home.settings.owner, connect(replace(seaweed_s3, prefix="home"))
    ((video,), _) = far.videos.page()
    poster = hashlib.sha256(bucket.get(f"thumbs/{video.id}/poster.jpg").bytes().to_bytes()).hexdigest()
    bucket.put(blob_key(owner, poster), b"not a picture")
    damages = far.maintenance.verify().damages
    assert len(damages) == 1
    assert far.maintenance.repair(damages).exit_code == 0
    assert far.home.blobs.verify(owner, poster)
    assert far.maintenance.verify().damages == ()


def test_clearing_up_leaves_what_is_young(far: Library) -> None:
    before = _artifacts(far)
    assert far.maintenance.gc().blobs == 0
    assert _artifacts(far) == before
