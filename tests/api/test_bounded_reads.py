"""Pages and followers that read no more than they show, however much there is."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rushes.domain.task import Failure
from rushes.ledger.port import Ledger
from rushes.library import Library
from rushes.library.jobs import Jobs
from rushes.records.port import Records
from rushes.surfaces.http.event_hub import ALONE_SECONDS, LOOK_SECONDS, QUIET_SECONDS, EventHub, pause_after
from rushes.surfaces.web.pages import add, failed
from tests.api.kit import WORKER, Serving, begin, serving, submit
from tests.api.test_lists import fill

BAD = Failure("BadMedia", "it makes no sense", "Look at it.", "will not work without a change")
PAGE = 200


def bury(ledger: Ledger, jobs: int, each: int) -> None:
    """Jobs whose tasks all died."""
    for n in range(jobs):
        submit(ledger, f"sad{n}", tasks=each)
        for lease in ledger.claim(WORKER, ["cpu"], each):
            ledger.fail(WORKER, lease.task, lease.fence, BAD, None)


class Counted:
    """A ledger (or records) that counts what it is asked."""

    def __init__(self, store: Ledger | Records) -> None:
        self._store, self.asked = store, Counter[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        verb: Callable[..., Any] = getattr(self._store, name)

        def ask(*args: Any, **more: Any) -> Any:
            self.asked[name] += 1
            return verb(*args, **more)

        return ask


@contextmanager
def counting(server: Serving) -> Iterator[tuple[Counter[str], Counter[str]]]:
    """What ledger and records are asked in the meantime."""
    home = server.library.home
    ledger, records = Counted(home.ledger), Counted(home.records)
    home.__dict__.update(ledger=ledger, records=records)
    yield ledger.asked, records.asked
    home.__dict__.update(ledger=ledger._store, records=records._store)


def test_a_page_of_what_failed_asks_as_often_however_much_failed(tmp_path: Path) -> None:
    asked = []
    for jobs, each in ((3, 100), (201, 1)):
        with serving(tmp_path / str(jobs)) as server:
            bury(server.ledger, jobs, each)
            with counting(server) as count:
                page = server.http.get("/failed")
                rows = server.get("/api/v1/failed")
            assert page.text.count('class="cause"') == 1
            assert f"{PAGE} tasks in {PAGE // each} jobs here" in page.text
            assert (rows["items"][0]["count"], bool(rows["next"])) == (PAGE, True)
            asked.append(count)
    assert asked[0] == asked[1]
    assert asked[0][1]["get_many"] == 2
    assert not asked[0][1]["get"]


def test_one_click_tries_everything_again_in_requests_of_a_bounded_size(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed, "AT_ONCE", 20)
    bury(server.ledger, 3, 30)
    answer = server.http.post("/failed/retry", data={"only": "BadMedia"}, follow_redirects=True)
    assert [r.status_code for r in answer.history] == [307, 307, 307, 307, 303]
    assert "90 tasks will be retried" in answer.text
    assert not server.library.jobs.failed.groups()


def test_a_click_stops_before_the_browser_gives_up_and_says_that_there_is_more(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed, "AT_ONCE", 2)
    bury(server.ledger, 1, 40)
    answer = server.http.post("/failed/discard", data={"only": "BadMedia"}, follow_redirects=True)
    assert "32 tasks dismissed" in answer.text
    assert "There are more" in answer.text
    assert len(server.library.jobs.failed.groups()[0].tasks) == 8


@pytest.mark.parametrize("do", ["retry", "discard"])
def test_a_program_goes_through_what_failed_by_cursor(server: Serving, do: str) -> None:
    bury(server.ledger, 2, 5)
    done, cursor = [], ""
    while True:
        some = server.post(f"/api/v1/failed/{do}", {"kind": "BadMedia", "cursor": cursor, "limit": 3})
        done += some["tasks"]
        assert len(some["tasks"]) <= 3
        cursor = some["cursor"]
        if not cursor:
            break
    assert len(set(done)) == len(done) == 10
    assert server.get("/api/v1/failed")["items"] == []
    server.post(f"/api/v1/failed/{do}", {"cursor": "made-up"}, status=400)


def test_what_failed_later_is_on_the_next_page(server: Serving) -> None:
    bury(server.ledger, 3, 100)
    first = server.http.get("/failed").text
    link = first.partition(">more</a>")[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    assert "100 tasks in 1 job here" in server.http.get(link).text
    assert server.http.get("/failed?cursor=made-up").status_code == 400
    assert server.http.post("/failed/retry", data={"only": "BadMedia"}, follow_redirects=False).status_code == 303
    assert "No failed tasks" in server.http.get("/failed").text


def test_a_film_that_is_here_is_looked_for_among_the_newest_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add, "KNOWN", 1000)
    with Library(tmp_path / "home") as library:
        fill(library, 1200)
    with serving(tmp_path / "home") as server:
        assert len(server.get("/add/known?size=1")) == 1000
        assert server.get("/add/known?size=2") == []


def test_nobody_listens_so_no_row_is_read(server: Serving) -> None:
    begin(server.ledger, "one")
    counted: Any = Counted(server.ledger)
    home: Any = SimpleNamespace(ledger=counted, owner=server.library.settings.owner)
    alone = EventHub(Jobs(home))
    begin(server.ledger, "two")
    cursor = alone._look("")
    assert counted.asked == Counter(changed=1)
    assert alone._look(cursor) == cursor
    alone.listen("", 0)
    begin(server.ledger, "three")
    alone._look(cursor)
    assert counted.asked["jobs"] == 1


def test_the_follower_asks_less_and_less_while_nothing_happens() -> None:
    assert pause_after(LOOK_SECONDS, news=True, heard=False) == ALONE_SECONDS
    assert pause_after(ALONE_SECONDS, news=True, heard=True) == LOOK_SECONDS
    pauses = [LOOK_SECONDS]
    while pauses[-1] < QUIET_SECONDS:
        pauses.append(pause_after(pauses[-1], news=False, heard=True))
    assert 3 < len(pauses) < 20
    assert pause_after(QUIET_SECONDS, news=False, heard=True) == QUIET_SECONDS
