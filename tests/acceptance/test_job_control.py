"""Pause, cancel, resume, stop and go on: with real processes, gates instead of sleeps, and the ledger as the judge."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from proof.kills import TOYS, Film, command, environment

from rushes.domain.errors import Refused
from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import TaskState
from rushes.jobs.why import Reason
from rushes.library import JobRequest, Library
from rushes.wiring.workers import worker
from rushes.worker import core
from tests.acceptance.conftest import DEADLINE, wait_for
from tests.disk_space import report_free_bytes
from tests.metadata_kit import NOTICE, metadata_service

WISH = JobRequest(only=("toy_join",), chunk="5")


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toys are there, each task may be held by a gate file, and a worker of this process soon hears of orders."""
    monkeypatch.setattr(core, "RENEW_SECONDS", 0.5)
    monkeypatch.syspath_prepend(str(TOYS))
    for name, value in environment(tmp_path, TOY_GATE=str(tmp_path / "gate")).items():
        if name.startswith(("TOY_", "PYTHONPATH", "RUSHES_SANDBOX")):
            monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture
def library(toys: Path) -> Iterator[Library]:
    with Library(toys / "home") as library:
        yield library


class Background:
    """A worker of the home in a thread of this process."""

    def __init__(self, library: Library, job: str) -> None:
        final = {JobState.COMPLETED, JobState.FAILED}
        self.shell = worker(library.home, slots=2, until=lambda _s: library.home.ledger.job(job).state in final)
        self.thread = threading.Thread(target=self.shell.run)
        self.thread.start()

    def stop(self) -> None:
        self.shell.request_stop()
        self.shell.request_stop()
        self.thread.join(DEADLINE)


def begun(folder: Path, what: str) -> Callable[[], bool]:
    witness = folder / "witness"
    return lambda: witness.exists() and f"begin {what}" in witness.read_text()


def test_cancel_lets_nothing_commit_and_retry_brings_it_back(library: Library, toys: Path, toy_film: Path) -> None:
    gate = toys / "gate.toy_chunk.0"
    gate.touch()
    (added,) = library.add([toy_film], WISH)
    assert added.job
    job = added.job.id
    worker = Background(library, job)
    wait_for(begun(toys, "toy_chunk 0"), "chunk 0 never began")
    library.jobs.cancel(job)
    last = library.jobs.find(job).last_event
    gate.unlink()
    wait_for(lambda: not worker.shell.state.held, "the cancelled work was never let go")
    worker.stop()
    assert library.jobs.find(job).state is JobState.CANCELLED
    assert not [e for e in library.jobs.follow(job, last) if e.type in (EventType.DONE, EventType.ADOPTED)]
    assert {t.state for t in library.jobs.tasks(job)} <= {TaskState.DONE, TaskState.CANCELLED}
    assert library.jobs.why(job)[0].reason is Reason.CANCELLED

    library.jobs.retry(job)
    assert library.run([toy_film], WISH).exit_code == 0


def test_pause_starts_nothing_new_and_lets_running_chunks_commit(library: Library, toys: Path, toy_film: Path) -> None:
    for n in (0, 1):
        (toys / f"gate.toy_chunk.{n}").touch()
    (added,) = library.add([toy_film], WISH)
    assert added.job
    job = added.job.id
    worker = Background(library, job)
    wait_for(lambda: begun(toys, "toy_chunk 0")() and begun(toys, "toy_chunk 1")(), "two chunks never began")
    library.jobs.pause(job)
    for n in (0, 1):
        (toys / f"gate.toy_chunk.{n}").unlink()
    wait_for(lambda: not worker.shell.state.held, "running chunks were never settled")
    done = {t.chunk for t in library.jobs.tasks(job) if t.stage == "toy_chunk" and t.state is TaskState.DONE}
    assert done == {0, 1}
    assert {b.reason for b in library.jobs.why(job)} == {Reason.PAUSED}
    library.jobs.resume(job)
    worker.thread.join(DEADLINE)
    assert library.jobs.find(job).state is JobState.COMPLETED


def test_pause_now_gives_running_chunks_back(library: Library, toys: Path, toy_film: Path) -> None:
    gate = toys / "gate.toy_chunk.0"
    gate.touch()
    (added,) = library.add([toy_film], WISH)
    assert added.job
    job = added.job.id
    worker = Background(library, job)
    wait_for(begun(toys, "toy_chunk 0"), "chunk 0 never began")
    library.jobs.pause(job, now=True)
    wait_for(lambda: any(e.type is EventType.GIVEN_BACK for e in library.jobs.follow(job)), "it was never given back")
    gate.unlink()
    worker.stop()
    (task,) = [t for t in library.jobs.tasks(job) if t.chunk == 0]
    assert (task.state, task.failures, task.losses) == (TaskState.READY, 0, 0)
    library.jobs.resume(job)
    assert library.run([toy_film], WISH).exit_code == 0


def test_a_full_disk_stops_intake_with_that_reason_and_work_resumes_by_itself(
    library: Library, toy_film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = [0]
    report_free_bytes(monkeypatch, lambda: room[0])
    (added,) = library.add([toy_film], WISH)
    assert added.job
    job = added.job.id
    worker = Background(library, job)
    wait_for(
        lambda: any(w.note == "disk full" for w in library.home.ledger.workers()), "nobody said that the disk is full"
    )
    assert {b.reason for b in library.jobs.why(job)} == {Reason.DISK_FULL}
    assert library.jobs.find(job).counts.done == 0
    room[0] = 1 << 50
    worker.thread.join(DEADLINE)
    assert library.jobs.find(job).state is JobState.COMPLETED
    assert library.jobs.find(job).counts.failures == 0


@pytest.mark.parametrize(
    ("signals", "code"), [((signal.SIGINT,), 130), ((signal.SIGTERM,), 143), ((signal.SIGINT, signal.SIGINT), 130)]
)
def test_a_signal_leaves_the_job_open_and_the_same_command_goes_on(
    signals: tuple[signal.Signals, ...], code: int, toys: Path, toy_film: Path
) -> None:
    film = Film(toy_film, "toy_join")
    gate = toys / "gate.toy_chunk.0"
    gate.touch()
    process = subprocess.Popen(command(toys, film), env=environment(toys, TOY_GATE=str(toys / "gate")))
    wait_for(begun(toys, "toy_chunk 0"), "chunk 0 never began")
    with Library(toys / "home") as library:
        for number in signals:
            process.send_signal(number)  # the next one only when this one was noticed: signals do not queue
            wait_for(
                lambda: any(w.note.startswith("draining: SIG") for w in library.home.ledger.workers()),
                "it never drained",
            )
    if len(signals) == 1:
        gate.unlink()  # drained: what runs may finish
    assert process.wait(DEADLINE) == code
    gate.unlink(missing_ok=True)
    with Library(toys / "home") as library:
        (job,) = library.jobs.page().rows
        assert job.state is JobState.RUNNING
        first = [t for t in library.jobs.tasks(job.id) if t.chunk == 0]
        assert first[0].state is (TaskState.DONE if len(signals) == 1 else TaskState.READY)
        assert not any(w.alive for w in library.home.ledger.workers())
    assert subprocess.run(command(toys, film), env=environment(toys), check=False).returncode == 0


@pytest.mark.parametrize(("how", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("Spot notice", 143)])
def test_a_drained_worker_hands_its_work_back_and_says_why(
    how: str, code: int, library: Library, toys: Path, toy_film: Path
) -> None:
    (toys / "gate.toy_chunk.0").touch()
    (added,) = library.add([toy_film], WISH)
    assert added.job
    with metadata_service() as metadata:
        env = environment(toys, TOY_GATE=str(toys / "gate"), RUSHES_DRAIN_SECONDS="0", RUSHES_SPOT_NOTICE=metadata.url)
        argv = [sys.executable, "-m", "rushes", "--home", str(toys / "home"), "worker", "--slots", "1"]
        process = subprocess.Popen(argv, env=env, stderr=subprocess.DEVNULL)
        wait_for(begun(toys, "toy_chunk 0"), "chunk 0 never began")
        if how.startswith("SIG"):
            process.send_signal(signal.Signals[how])
        else:
            metadata.notice = NOTICE
        assert process.wait(DEADLINE) == code
    (event,) = [e for e in library.jobs.follow(added.job.id) if e.type is EventType.GIVEN_BACK]
    assert str(event.data["reason"]).startswith(f"drained: {how}")
    (task,) = [t for t in library.jobs.tasks(added.job.id) if t.chunk == 0]
    assert (task.state, task.failures, task.losses, task.due_in) == (TaskState.READY, 0, 0, None)
    (toys / "gate.toy_chunk.0").unlink()
    assert library.run([toy_film], WISH).exit_code == 0


def test_after_kill_9_the_same_command_goes_on_at_once(toys: Path, toy_film: Path) -> None:
    film = Film(toy_film, "toy_join")
    (toys / "gate.toy_chunk.0").touch()
    process = subprocess.Popen(command(toys, film), env=environment(toys, TOY_GATE=str(toys / "gate")))
    wait_for(begun(toys, "toy_chunk 0"), "chunk 0 never began")
    process.kill()
    process.wait()
    (toys / "gate.toy_chunk.0").unlink()
    with Library(toys / "home") as library:
        (job,) = library.jobs.page().rows
        swept = library.home.ledger.sweep()
        assert swept.released > 0, "the lease of a process that is gone is over at once"
        assert {t.losses for t in library.jobs.tasks(job.id) if t.chunk == 0} == {1}
    assert subprocess.run(command(toys, film), env=environment(toys), check=False).returncode == 0


def test_finished_work_is_not_touched_again(library: Library, toy_film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert library.run([toy_film], WISH).worked
    monkeypatch.setattr(sys, "executable", os.devnull)  # no slot could be started
    ran = library.run([toy_film], WISH)
    assert (ran.worked, ran.exit_code) == (False, 0)


def test_a_moved_film_is_adopted_and_a_changed_one_is_new(library: Library, toys: Path, toy_film: Path) -> None:
    film = toys / "a.mp4"
    film.write_bytes(toy_film.read_bytes())
    (first,) = library.run([film], WISH).jobs
    film.rename(toys / "b.mp4")
    (second,) = library.run([toys / "b.mp4"], WISH).jobs
    assert first.id != second.id
    ran = [e for e in library.jobs.follow(second.id) if e.type is EventType.DONE]
    assert {e.task for e in ran} == {f"{second.id}.probe"}
    assert (toys / "witness").read_text().count("begin toy_join") == 1
    assert len(library.videos.page()[0]) == 1


def test_a_folder_of_originals_is_referenced_never_copied(library: Library, toys: Path, toy_film: Path) -> None:
    folder = toys / "films"
    folder.mkdir()
    padding = os.urandom(8 << 20)
    for n in range(3):
        (folder / f"{n}.mp4").write_bytes(
            toy_film.read_bytes() + b"\x08\x00\x00\x01free" + padding[: (8 << 20) - 8 - n]
        )
    originals = sum(f.stat().st_size for f in folder.iterdir())
    ran = library.run([folder], WISH)
    assert len(ran.jobs) == 3
    kept = [f for f in (toys / "home").rglob("*") if f.is_file() and not f.name.endswith("-wal")]
    assert sum(f.stat().st_size for f in kept) < originals / 10


def test_pausing_a_finished_job_is_refused(library: Library, toy_film: Path) -> None:
    (job,) = library.run([toy_film], WISH).jobs
    with pytest.raises(Refused):
        library.jobs.pause(job.id)
