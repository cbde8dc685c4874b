"""List pages of a large library: as many statements as in a small one, and no more rows looked at."""

import functools
import gc
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rushes.domain.job import JobCommand
from rushes.domain.task import Failure
from rushes.index.changes import Change, Run, RunUpdate, SelectionUpdate
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.port import Ledger
from rushes.library import Library
from rushes.sqlite.file import SqliteFile
from tests.api.kit import WORKER, Serving, begin, enter, serving

MANY, JOBS, DEAD = 10_000, 800, 220  # videos; jobs that nobody has begun; jobs whose first task died
BAD = Failure("BadMedia", "it makes no sense", "Look at it.", "will not work without a change")
PAGES = ["/api/v1/videos?limit=50", "/api/v1/jobs?limit=50", "/api/v1/jobs?state=created&limit=10",
         "/api/v1/clips", "/api/v1/workers"]  # fmt: skip
FOR_PEOPLE = ["/", "/library", "/library?view=list", "/search"]
BROWSER = {"Accept": "text/html"}
STEPS = 100  # of SQLite's machine between two counts


class Count:
    """What SQLite did for a request: statements, and hundreds of steps of its machine, which follow the rows read."""

    def __init__(self) -> None:
        self.statements, self.steps = 0, 0

    def statement(self, _text: str) -> None:
        self.statements += 1

    def step(self) -> int:
        self.steps += 1
        return 0


def fill(library: Library, videos: int) -> None:
    home: Any = library.home
    changes: list[Change] = []
    for n in range(videos):
        video, day = f"vid_{n:016d}", f"2026-01-01T00:{n // 60 % 60:02d}:{n % 60:02d}.{n:06d}Z"
        facts = {"video": video, "name": f"film {n}.mp4", "path": f"film {n}.mp4", "duration_us": 1, "size": 1}
        changes.append(RunUpdate(Run(f"job_{n:016d}", "me", video, "searchable", "completed", day, facts)))
        changes.append(SelectionUpdate("me", video))
    home.index.apply(*changes)
    for db in connections(stores(home.folder)):
        db.execute("PRAGMA synchronous = OFF")
    for n in range(min(videos, JOBS)):
        begin(home.ledger, f"open{n:012d}")
    bury(home.ledger, min(2 * videos, DEAD))
    library.videos.page()


def bury(ledger: Ledger, jobs: int) -> None:
    """Jobs that gave up, one task each."""
    ids = [begin(ledger, f"dead{n:012d}").id for n in range(jobs)]
    enter(ledger)
    for lease in ledger.claim(WORKER, ["cpu"], jobs, [f"{job}.probe" for job in ids]):
        ledger.fail(WORKER, lease.task, lease.fence, BAD, None)
    enter(ledger)  # so that what it held is forgotten
    ledger.control(WORKER, JobCommand.LEAVE)


def stores(home: Path) -> list[SqliteFile | SqliteIndex]:
    """Every file of a home that is open: looking through all objects takes a tenth of a second."""
    things = [thing for thing in gc.get_objects() if isinstance(thing, SqliteFile | SqliteIndex)]
    return [thing for thing in things for db in connections([thing]) if lies_in(home, db)]


def lies_in(home: Path, db: sqlite3.Connection) -> bool:
    try:
        return Path(db.execute("PRAGMA database_list").fetchone()[2]).is_relative_to(home.resolve())
    except sqlite3.ProgrammingError:  # it is closed
        return False


def connections(things: list[SqliteFile | SqliteIndex]) -> Iterator[sqlite3.Connection]:
    """Every connection to these files, held while it is looked at.

    A thread that counts a statement wants the interpreter; whoever sets what counts has it and wants the connection.
    """
    for thing in things:
        lock, db = (thing._lock, thing.db) if isinstance(thing, SqliteFile) else (thing._guard, thing._open)
        with lock:
            if db:
                yield db


stores_of = functools.cache(stores)  # of servers that live as long as this module's tests


@contextmanager
def counted(server: Serving) -> Iterator[Count]:
    count, files = Count(), stores_of(server.library.home.folder)
    assert len(files) > 1, "nothing would be counted"
    for db in connections(files):
        db.set_trace_callback(count.statement)
        db.set_progress_handler(count.step, STEPS)
    yield count
    for db in connections(files):
        db.set_trace_callback(None)
        db.set_progress_handler(None, 0)


@pytest.fixture(scope="module")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, Serving]]:
    """A library of 100 videos and one of 10,000."""
    homes = [tmp_path_factory.mktemp("shelf") / "home" for _ in range(2)]
    for home, videos in zip(homes, (100, MANY), strict=True):
        with Library(home) as library:
            fill(library, videos)
    with serving(homes[0]) as small, serving(homes[1]) as large:
        for shelf in (small, large):
            quiet(shelf)
            for path in (*PAGES, *FOR_PEOPLE):  # so that everything is open
                assert shelf.http.get(path, headers=BROWSER).status_code == 200
        yield small, large


def cheapest(server: Serving, path: str) -> tuple[Count, Any]:
    """What a page costs when nobody else asks: threads of the server look at the store now and then."""
    tries = []
    for _ in range(3):
        with counted(server) as count:
            tries.append((count, server.get(path)))
    return min(tries, key=lambda one: one[0].statements)


def cheapest_page(server: Serving, path: str) -> Count:
    tries = []
    for _ in range(3):
        with counted(server) as count:
            assert server.http.get(path, headers=BROWSER).text.startswith(("<!doctype html>", "{"))
        tries.append(count)
    return min(tries, key=lambda one: one.statements)


def quiet(server: Serving) -> None:
    """The follower of the streams asks too: while something is counted it does not."""
    server.app.state.hub.stop()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_a_large_library_costs_what_one_of_a_small_library_costs(
    shelves: tuple[Serving, Serving], path: str
) -> None:
    small, large = (cheapest(shelf, path)[0] for shelf in shelves)
    assert large.statements == small.statements
    assert large.steps <= 2 * small.steps + 20


@pytest.mark.parametrize("path", FOR_PEOPLE)
def test_a_page_for_people_costs_the_same_in_a_large_library(shelves: tuple[Serving, Serving], path: str) -> None:
    """But for the sums, which are counted once in a while."""
    small, large = (cheapest_page(shelf, path) for shelf in shelves)
    assert large.statements == small.statements
    assert large.steps <= 2 * small.steps + 20


@pytest.mark.parametrize("path", ["/jobs", "/jobs?tab=finished", "/failed", "/api/v1/failed?limit=10"])
def test_a_table_of_jobs_asks_as_often_however_many_rows_it_has(shelves: tuple[Serving, Serving], path: str) -> None:
    """And reads no more than what is shown and the first few hundred of each state, which are counted."""
    small, large = (cheapest_page(shelf, path) for shelf in shelves)
    assert large.statements == small.statements
    assert large.steps < 1000


def test_a_filter_that_nothing_fits_does_not_read_the_whole_library(shelves: tuple[Serving, Serving]) -> None:
    with counted(shelves[1]) as count:
        assert "No videos match" in shelves[1].http.get("/library?name=nowhere").text
    assert count.statements < 1000


def test_the_last_page_costs_what_the_first_one_costs(shelves: tuple[Serving, Serving]) -> None:
    large, places = shelves[1], ["/api/v1/videos?limit=500"]
    seen: set[str] = set()
    while places[-1]:
        page = large.get(places[-1])
        seen |= {video["id"] for video in page["items"]}
        places.append(page["next"])
    assert len(seen) == MANY
    cost = [cheapest(large, place)[0] for place in (places[0], places[len(places) // 2], places[-2])]
    assert len({count.statements for count in cost}) == 1
    assert max(count.steps for count in cost) <= 1.5 * min(count.steps for count in cost)


def test_one_video_is_found_without_looking_at_the_others(shelves: tuple[Serving, Serving]) -> None:
    with counted(shelves[1]) as count:
        shelves[1].get(f"/api/v1/videos/vid_{MANY // 2:016d}")
    assert count.statements < 60
    assert count.steps < 50
