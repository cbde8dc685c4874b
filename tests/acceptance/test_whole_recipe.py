"""The default recipe on a spoken film: what a person gets, while it runs and afterwards."""

import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import pytest

from rushes.blobs.documents import address, read_document
from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import TaskState
from rushes.library import JobRequest, Library
from rushes.wiring.workers import worker
from rushes.worker.inputs import Input, OutboxEntryWritten
from tests.acceptance.conftest import DEADLINE

FAST = JobRequest(chunk="5", profile="fast")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, spoken_film: Path) -> Iterator[tuple[Library, Path]]:
    """A folder with a home of its own, and the film developed in it."""
    folder = tmp_path_factory.mktemp("footage")
    film = folder / "speech.mp4"
    film.write_bytes(spoken_film.read_bytes())
    with Library(folder / ".rushes") as library:
        ran = library.run([film], FAST)
        assert ran.exit_code == 0
        yield library, film


def shown(film: av.container.InputContainer) -> list[Fraction]:
    return [(f.pts or 0) * Fraction(f.time_base or 0) for f in film.decode(video=0)]


def test_words_are_found_to_the_word_and_the_time(done: tuple[Library, Path]) -> None:
    library, _ = done
    (hit,) = library.search('"can do for you"').hits
    assert 6_000_000 < hit.start_us < hit.end_us < 11_000_000
    assert hit.end_us - hit.start_us < 2_500_000
    assert [text for text, marked in hit.pieces if marked] == ["can do for you"]


def test_the_proxy_plays_from_its_playlist_with_every_frame(done: tuple[Library, Path]) -> None:
    library, film = done
    video = library.videos.find("speech.mp4")
    playlist = Path(address(library.home.blobs, video.proxy))
    with av.open(str(playlist)) as proxy, av.open(str(film)) as original:
        times, wanted = shown(proxy), shown(original)
    shift = times[0] - wanted[0]
    assert [t - shift for t in times] == wanted
    with av.open(str(playlist)) as proxy:
        assert sum(f.samples for f in proxy.decode(audio=0)) / 48000 == pytest.approx(11.0, abs=0.3)


def test_subtitles_lie_beside_the_film_and_a_foreign_file_is_never_overwritten(done: tuple[Library, Path]) -> None:
    library, film = done
    srt = film.with_suffix(".en.srt")
    assert "country" in srt.read_text()
    srt.write_text("mine")
    job = library.jobs.page().rows[-1]  # the first one
    kept = {file.path.name: file.kept for file in library.videos.write_beside([job])}
    assert "not written by rushes" in kept["speech.en.srt"]
    assert kept["speech.en.vtt"] == ""
    assert srt.read_text() == "mine"
    srt.unlink()
    library.videos.write_beside([job])
    assert "country" in srt.read_text()


def test_a_home_that_is_lost_is_searchable_again_by_the_sidecar_that_the_run_wrote(
    done: tuple[Library, Path], tmp_path: Path
) -> None:
    library, film = done
    library.videos.write_beside(library.jobs.page(JobState.COMPLETED).rows)
    (hit,) = library.search('"can do for you"').hits
    with Library(tmp_path / "new") as other:
        (read,) = other.maintenance.read_sidecars([film.parent])
        assert (read.path.name, read.kept) == ("speech.rushes.jsonl", "")
        (again,) = other.search('"can do for you"').hits
    assert (again.video, again.span, again.matched) == (hit.video, hit.span, hit.matched)


def test_a_run_that_is_told_to_writes_nothing_beside_the_film(spoken_film: Path, tmp_path: Path) -> None:
    film = tmp_path / "quiet.mp4"
    film.write_bytes(spoken_film.read_bytes())
    with Library(tmp_path / "home") as library:
        library.run([film], JobRequest(only=("audio",)), beside=False)
    assert {p.name for p in tmp_path.iterdir()} == {"quiet.mp4", "home"}


def test_a_clip_is_exact_and_the_same_again_is_the_same(done: tuple[Library, Path], tmp_path: Path) -> None:
    library, _ = done
    clip = library.clip("speech.mp4", 3_000_000, 5_000_000, 0, tmp_path / "clip.mp4")
    assert clip.made
    with av.open(str(clip.path)) as made:
        assert len(list(made.decode(video=0))) == 20
    assert not library.clip("speech.mp4", 3_000_000, 5_000_000, 0).made


@pytest.mark.parametrize(
    "kind", ["srt", "vtt", "txt", "json", "csv", "jsonl", "chapters", "chapters.vtt", "edl", "otio"]
)
def test_every_export_is_there(kind: str, done: tuple[Library, Path]) -> None:
    library, _ = done
    assert library.videos.export(library.videos.find("speech.mp4"), kind)


def test_reindexing_gives_the_same_answers(done: tuple[Library, Path]) -> None:
    library, _ = done
    before = library.search("country OR americans").hits
    library.maintenance.reindex()
    assert library.search("country OR americans").hits == before


def test_another_profile_runs_only_what_depends_on_the_model(done: tuple[Library, Path]) -> None:
    library, film = done
    (job,) = library.run([film], JobRequest(chunk="5", profile="balanced"), beside=False).jobs
    ran = {e.data["stage"] for e in library.jobs.follow(job.id) if e.type is EventType.DONE}
    assert ran == {"transcribe", "transcript", "read_text", "segments", "faces"}


def test_another_proxy_runs_no_model_again(done: tuple[Library, Path]) -> None:
    library, film = done
    smaller = JobRequest(chunk="5", profile="fast", options={"develop": {"height": 72}})
    (job,) = library.run([film], smaller, beside=False).jobs
    ran = {e.data["stage"] for e in library.jobs.follow(job.id) if e.type is EventType.DONE}
    assert ran == {"develop", "playlist"}


def test_provenance_names_what_made_it(done: tuple[Library, Path]) -> None:
    library, _ = done
    for key in library.home.blobs.keys("results/"):
        data = read_document(library.home.blobs, key) or b""
        assert b'"run_id":"job_' in data
        assert b'"config_hash"' in data


def test_the_past_is_searchable_while_the_rest_is_being_worked_on(tmp_path: Path, spoken_film: Path) -> None:
    with Library(tmp_path / "home") as library:
        (added,) = library.add([spoken_film], FAST)
        assert added.job
        job = added.job.id
        shell = worker(library.home, slots=1, until=lambda _s: library.home.ledger.job(job).state is JobState.COMPLETED)
        paused = threading.Event()

        def on_input(input: Input) -> None:  # by the worker itself, before it takes anything else
            if isinstance(input, OutboxEntryWritten) and input.entry.lease.task == f"{job}.transcribe.00000":
                library.jobs.pause(job)
                paused.set()

        shell.on_input = on_input
        thread = threading.Thread(target=shell.run)
        thread.start()
        try:
            assert paused.wait(DEADLINE), "the first chunk was never heard"
            found = library.search("fellow")
            assert found.total == 1
            waiting = [t for t in library.jobs.tasks(job) if t.stage == "transcribe" and t.state is TaskState.READY]
            assert waiting, "nothing was left to do"
            assert library.jobs.find(job).state is JobState.RUNNING
            library.jobs.resume(job)
        finally:
            thread.join(DEADLINE)
        assert library.jobs.find(job).state is JobState.COMPLETED


def test_what_was_estimated_is_kept_with_the_job(done: tuple[Library, Path]) -> None:
    library, film = done
    (estimate,) = library.estimates.of_run([film], FAST)
    assert estimate.error is None
    assert 0 < estimate.cost.seconds[0] < estimate.cost.seconds[1]
    assert not estimate.measured, "everything was done here before"
    (job,) = library.run([film], JobRequest(chunk="5", profile="fast", again=1), beside=False).jobs
    expected = library.jobs.expected(job)
    assert expected
    assert expected == library.jobs.expected(library.jobs.find(job.id))
    assert Fraction(job.counts.done, job.counts.total) == 1
