"""Doing the work here and now, with films that are none: what is heard on the way, and how it ended."""

import io
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rushes.domain.errors import NoRoom
from rushes.domain.event import EventType
from rushes.domain.task import Failure
from rushes.library import JobRequest, Library
from rushes.library.run import Work
from rushes.surfaces.cli.commands.run import watched
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.summary import Notes
from rushes.worker.inputs import DiskSpace
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
    heard: list[DiskSpace] = []
    report_free_bytes(monkeypatch, lambda: 1 << 50 if heard else 7)
    ran = library.run(films(tmp_path, 1), PROBE, on_room=heard.append)
    assert heard[0] == DiskSpace(enough=False, free=7, kept=library.home.settings.reserve_mb * 2**20)
    assert heard[-1].enough
    assert ran.exit_code == 7, "it is no film"


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
    ran = watched(session, library, [str(film) for film in films(tmp_path, 1)], PROBE, 1, Notes())
    assert ran.exit_code == 7, "it is no film"
    lines = [line.rpartition("\r")[2] for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue()).split("\n")]
    assert max(map(len, lines)) <= width
    assert any(line.startswith("disk nearly full: 7 bytes free") for line in lines)


def test_where_there_is_no_room_nothing_is_tried_out(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_free_bytes(monkeypatch, lambda: 7)
    with pytest.raises(NoRoom):
        library.estimate(films(tmp_path, 1), PROBE)


def test_what_an_estimate_has_probed_is_not_counted_as_done_before(library: Library, tmp_path: Path) -> None:
    film = make(tmp_path / "film.mp4", Film(cfr(1)))
    library.estimate([film], PROBE)
    ran = library.run([film], PROBE)
    assert [e.type for e in library.events(ran.jobs[0].id) if e.task] == [EventType.ADOPTED]
    assert ran.before == {ran.jobs[0].id: 0}
    again = library.run([film], PROBE)
    assert (again.before, again.worked) == ({}, False)


def test_the_job_whose_try_is_due_first_is_named(library: Library, tmp_path: Path) -> None:
    jobs = [added.job.id for added in library.add(films(tmp_path, 2), PROBE) if added.job]
    worker, leases = take(tmp_path / "home", 2)
    delays = dict(zip(jobs, (600.0, 300.0), strict=True))
    for lease in leases:
        library.home.ledger.fail(worker, lease.task, lease.fence, DIED, delays[lease.job])
    work = Work(library.home, jobs, slots=1)
    work.run()
    assert work.due_in is not None
    assert 0 < work.due_in <= 300.0
    assert work.due_job == jobs[1]


def test_a_run_stays_for_a_job_of_its_own_that_is_tried_again(library: Library, tmp_path: Path) -> None:
    first, second = [added.job.id for added in library.add(films(tmp_path, 2), PROBE) if added.job]
    work = Work(library.home, (first, second))
    library.cancel(second)
    assert not work._nothing_left(work.shell), "the first is open"
    library.retry(second)
    library.cancel(first)
    assert not work._nothing_left(work.shell), "the second is open again"
    library.cancel(second)
    assert work._nothing_left(work.shell)
