"""A 3D film by address: it replaces nothing, goes nowhere else, and its home is its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from rushes import settings
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import NotAllowed, Refused
from rushes.library.inference import Cancelled, Check, InferenceService, StereoFilms
from rushes.library.inference.gate import OutOfTime
from rushes.settings import Settings


def stay() -> None:
    """The caller is still there."""


class Instant(StereoFilms):
    """Makes its films at once."""

    def __init__(self, folder: Path, meanwhile: Callable[[], object] = stay) -> None:
        super().__init__(Settings(sources=str(folder)))
        self.meanwhile = meanwhile

    def _run(self, folder: Path, film: Path, made: Path, mode: str, check: Check) -> None:
        made.write_bytes(b"3D")
        self.meanwhile()


@pytest.fixture
def film(tmp_path: Path) -> Path:
    (tmp_path / "films").mkdir()
    film = tmp_path / "films" / "film.mp4"
    film.write_bytes(b"the only copy")
    return film


def test_a_3d_film_is_stored_under_a_new_name(film: Path) -> None:
    target = film.with_name("3d.mp4")
    Instant(film.parent).convert(str(film), str(target), "sbs", stay)
    assert target.read_bytes() == b"3D"
    assert {f.name for f in film.parent.iterdir()} == {"film.mp4", "3d.mp4"}


def test_a_3d_film_never_replaces_what_is_there(film: Path) -> None:
    other = film.with_name("other.mp4")
    other.symlink_to("nowhere.mp4")
    for target in (film, other):
        with pytest.raises(Refused, match="already"):
            Instant(film.parent).convert(str(film), str(target), "sbs", stay)
    late = film.with_name("late.mp4")
    with pytest.raises(Refused, match="already"):
        Instant(film.parent, lambda: late.write_bytes(b"late")).convert(str(film), str(late), "sbs", stay)
    assert (film.read_bytes(), late.read_bytes()) == (b"the only copy", b"late")
    assert not list(film.parent.glob(".*"))


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(film: Path, tmp_path: Path) -> None:
    out, outside = film.parent / "out", tmp_path / "outside"
    out.mkdir()
    outside.mkdir()

    def turn() -> None:
        out.rmdir()
        out.symlink_to(outside)

    with pytest.raises(NotAllowed, match="link"):
        Instant(film.parent, turn).convert(str(film), str(out / "x.mp4"), "sbs", stay)
    assert not list(outside.iterdir())


def test_the_home_of_a_3d_film_is_its_own_whatever_the_user_has_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("S3_BUCKET", "films")
    settings.user_file().parent.mkdir(parents=True)
    told = 'store = "postgresql://prod/ledger"\nblobs = "s3://prod"\nstage_inference = "stereo=http://elsewhere:1"\n'
    settings.user_file().write_text(told)
    loaded = settings.load(tmp_path / "home", StereoFilms(Settings())._environment()).settings
    assert (loaded.store, loaded.blobs, loaded.hints, loaded.stage_inference) == ("", "", "", "")


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_a_film_comes_from_a_bucket_of_any_cloud_and_goes_to_one(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, store = list[BucketLocation](), MemoryStore()

    def connect(location: BucketLocation) -> MemoryStore:
        asked.append(location)
        return store

    monkeypatch.setattr("rushes.bucket.client.connect", connect)
    store.put("in/film.mp4", b"film")
    films = Instant(tmp_path)
    films._roots = [f"{scheme}://films"]
    place = f"{scheme}://films"
    films.convert(f"{place}/in/film.mp4", f"{place}/out.mp4", "sbs", stay)
    assert bytes(store.get("out.mp4").bytes()) == b"3D"
    assert {location.url for location in asked} == {place}
    with pytest.raises(Refused, match="already"):
        films.convert(f"{place}/in/film.mp4", f"{place}/out.mp4", "sbs", stay)
    for other in (f"{place}-2/x.mp4", "gs://x/y.mp4", "http://films/x.mp4"):
        with pytest.raises(NotAllowed):
            films.convert(f"{place}/in/film.mp4", other, "sbs", stay)


def test_a_film_of_a_bucket_is_no_longer_fetched_when_its_caller_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    store.put("film.mp4", b"film")
    monkeypatch.setattr("rushes.bucket.client.connect", lambda _location: store)
    films, looks = Instant(tmp_path, lambda: pytest.fail("it was worked on")), []

    def gone() -> None:
        looks.append(1)
        raise Cancelled("gone")

    films._roots = ["s3://films"]
    with pytest.raises(Cancelled):
        films.convert("s3://films/film.mp4", "s3://films/out.mp4", "sbs", gone)
    assert looks


def test_little_memory_means_one_film_and_one_model_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IW3_LOW_VRAM", "1")
    told = settings.load(tmp_path / "home").settings
    films = StereoFilms(told)
    assert (films.queue.bound, films._environment()["RUSHES_SLOTS"]) == (1, "1")
    service = InferenceService(told)
    with service.gate.permit(stay):
        assert not service.gate._free
    plain = StereoFilms(Settings())
    assert (plain.queue.bound, "RUSHES_SLOTS" in plain._environment()) == (2, False)


def test_a_3d_film_takes_no_longer_than_a_question_may(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = film.with_name("endless")
    endless.write_text("#!/bin/sh\nexec sleep 600\n")
    endless.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(endless))
    films = StereoFilms(Settings(sources=str(film.parent), inference_seconds=1))
    with pytest.raises(OutOfTime):
        films.convert(str(film), str(film.with_name("x.mp4")), "sbs", stay)
