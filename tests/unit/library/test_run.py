"""Doing the work here and now, with films that are none: what is heard on the way, and how it ended."""

import io
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rushes.domain.errors import NoRoom, WrongHome
from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import Failure
from rushes.ledger.pages import all_jobs
from rushes.library import JobRequest, Library
from rushes.library.work.progress import DiskSpace, FilmsAdded, JobsProgress, RunReport
from rushes.library.work.workers import JobWorker
from rushes.surfaces.cli.commands.run import run_shown
from rushes.surfaces.cli.session import Session
from tests.disk_space import report_free_bytes
from tests.unit.cli_worker import films, take
from tests.unit.media_files import Film, cfr, make

PROBE = JobRequest(only=("probe",))
DIED = Failure("SlotDied", "signal 11", "Look.", "may work next time")


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "home") as library:
        yield library


def test_a_run_that_waits_for_room_says_so_and_goes_on_by_itself(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[DiskSpace] = []
    report_free_bytes(monkeypatch, lambda: 1 << 50 if seen else 7)
    for progress in library.running(films(tmp_path, 1), PROBE):
        seen += [progress] if isinstance(progress, DiskSpace) else []
    full, again = seen  # once, though each lane reports it
    assert full == DiskSpace(enough=False, free=7, reserve=library.home.settings.reserve_mb * 2**20)
    assert again.enough
    assert isinstance(progress, RunReport)
    assert progress.exit_code == 7, "it is no film"


def test_a_run_reports_what_was_added_then_progress_and_its_report_last(library: Library, tmp_path: Path) -> None:
    film = make(tmp_path / "film.mp4", Film(cfr(1)))
    added, first, *more, report = library.running([film], PROBE)
    assert isinstance(added, FilmsAdded)
    assert [one.path for one in added.results] == [str(film)]
    assert all(isinstance(one, JobsProgress) for one in (first, *more))
    assert isinstance(report, RunReport)
    assert [job.state for job in report.jobs] == [JobState.COMPLETED]


def test_the_first_look_is_taken_before_the_work_begins(library: Library, tmp_path: Path) -> None:
    progress = library.running([make(tmp_path / "film.mp4", Film(cfr(1)))], PROBE)
    seen = [one.snapshots for one in progress if isinstance(one, JobsProgress)]
    assert [[s.job.counts.done for s in some] for some in (seen[0], seen[-1])] == [[0], [1]]


def test_to_leave_a_run_is_to_stop_it(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report_free_bytes(monkeypatch, lambda: 7)  # it would wait for ever

    def leave() -> None:
        for progress in library.running(films(tmp_path, 1), PROBE):
            if isinstance(progress, DiskSpace):
                break

    thread = threading.Thread(target=leave, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert library.home.ledger.workers() == ()


def test_a_worker_that_its_ledger_refuses_ends_the_run(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> object:
        raise WrongHome("a newer version has changed it")

    monkeypatch.setattr(library.home.ledger, "renew", refuse)
    with pytest.raises(WrongHome, match="a newer version"):
        library.run(films(tmp_path, 1), PROBE)


def test_a_run_works_on_its_own_films_alone_though_nothing_was_ever_measured_here(
    library: Library, tmp_path: Path
) -> None:
    film = make(tmp_path / "film.mp4", Film(cfr(1)))
    with film.open("ab") as file:
        file.truncate(20 * 2**20)  # as large as a long film
    report = library.run([film], JobRequest(only=("develop",)), beside=False)
    assert [job.id for job in all_jobs(library.home.ledger, "me")] == [job.id for job in report.jobs]
    assert library.jobs.expected(report.jobs[0]) is not None, "its own chunks were measured"


@pytest.mark.parametrize("width", [40, 100])
def test_a_terminal_says_that_the_disk_is_nearly_full_while_a_run_waits(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    session, shown = Session(), io.StringIO()
    session.err.console = type(session.err.console)(file=shown, force_terminal=True, width=width)
    patience = time.monotonic() + 60

    def room() -> int:
        return 1 << 50 if "nearly full" in shown.getvalue() or time.monotonic() > patience else 7

    report_free_bytes(monkeypatch, room)
    assert session.bars
    ran, _ = run_shown(session, library, [str(film) for film in films(tmp_path, 1)], PROBE, 1)
    assert ran.exit_code == 7, "it is no film"
    lines = [line.rpartition("\r")[2] for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue()).split("\n")]
    assert max(map(len, lines)) <= width
    assert any(line.startswith("disk nearly full: 7 bytes free") for line in lines)


def test_where_there_is_no_room_nothing_is_tried_out(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_free_bytes(monkeypatch, lambda: 7)
    with pytest.raises(NoRoom):
        library.estimates.of_run(films(tmp_path, 1), PROBE)


def test_what_an_estimate_has_probed_is_not_counted_as_done_before(library: Library, tmp_path: Path) -> None:
    film = make(tmp_path / "film.mp4", Film(cfr(1)))
    library.estimates.of_run([film], PROBE)
    ran = library.run([film], PROBE)
    assert [e.type for e in library.jobs.follow(ran.jobs[0].id) if e.task] == [EventType.ADOPTED]
    assert ran.before == {ran.jobs[0].id: 0}
    again = library.run([film], PROBE)
    assert (again.before, again.worked) == ({}, False)


def test_the_job_whose_try_is_due_first_is_named(library: Library, tmp_path: Path) -> None:
    jobs = [added.job.id for added in library.add(films(tmp_path, 2), PROBE) if added.job]
    worker, leases = take(tmp_path / "home", 2)
    delays = dict(zip(jobs, (600.0, 300.0), strict=True))
    for lease in leases:
        library.home.ledger.fail(worker, lease.task, lease.fence, DIED, delays[lease.job])
    work = JobWorker(library.home, jobs, slots=1)
    work.run()
    assert work.due_in is not None
    assert 0 < work.due_in <= 300.0
    assert work.due_job == jobs[1]


def test_a_run_stays_for_a_job_of_its_own_that_is_tried_again(library: Library, tmp_path: Path) -> None:
    first, second = [added.job.id for added in library.add(films(tmp_path, 2), PROBE) if added.job]
    work = JobWorker(library.home, (first, second))
    library.jobs.cancel(second)
    assert not work.nothing_left(work.shell), "the first is open"
    library.jobs.retry(second)
    library.jobs.cancel(first)
    assert not work.nothing_left(work.shell), "the second is open again"
    library.jobs.cancel(second)
    assert work.nothing_left(work.shell)
