"""Streams: replay then live, each event once and in order, for many readers and slow ones."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from rushes.domain.event import Event
from rushes.domain.job import JobCommand
from rushes.domain.task import Finish
from rushes.library.job_events import watch
from rushes.library.jobs import Jobs
from rushes.surfaces.api import events, output
from rushes.surfaces.http import event_hub
from tests.api.kit import DEADLINE, PLAIN, WORKER, Serving, serving, submit, wait_for, work

READERS, TASKS = 200, 40


async def read(client: httpx.AsyncClient, path: str, **headers: str) -> AsyncIterator[tuple[int, str]]:
    """(number, type) of each event, until the server ends the stream."""
    async with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        number, kind = 0, ""
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            number = int(value) if name == "id" else number
            kind = value if name == "event" else kind
            if name == "data" and kind not in ("end", "job"):
                assert json.loads(value)["number"] == number
                yield number, kind


def client_of(server: Serving) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=READERS + 10)
    return httpx.AsyncClient(base_url=server.url, timeout=DEADLINE, limits=limits, verify=PLAIN)


def test_two_hundred_readers_see_each_event_once_and_in_order_while_a_job_runs(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, look = [], Jobs.events

    def counted(jobs: Jobs, job: str, after: int = 0, limit: int = 500) -> tuple[Event, ...]:
        if threading.current_thread().name != "hub":
            looks.append(after)
        return look(jobs, job, after, limit)

    monkeypatch.setattr(Jobs, "events", counted)
    job = submit(server.ledger, "film", TASKS)
    hub = server.app.state.hub

    def go() -> None:
        wait_for(lambda: hub.streams >= READERS // 2, "the readers never came")
        while work(server.ledger, 3):
            pass

    async def all_of_them() -> list[list[int]]:
        async with client_of(server) as client:

            async def one(after: int) -> list[int]:
                path = f"/api/v1/jobs/{job.id}/events"
                return [n async for n, _ in read(client, path, **{"Last-Event-ID": str(after)})]

            return await asyncio.gather(*(one(n % 5) for n in range(READERS)))

    worker = threading.Thread(target=go)
    worker.start()
    with ThreadPoolExecutor(1) as elsewhere:  # this thread may have a loop: that of a browser's driver
        seen = elsewhere.submit(asyncio.run, all_of_them()).result()
    worker.join()
    last = server.ledger.job(job.id).last_event
    assert last >= TASKS
    for n, numbers in enumerate(seen):
        assert numbers == list(range(n % 5 + 1, last + 1))
    assert len(looks) <= READERS, "a stream reads the past once; what comes later it hears"
    wait_for(lambda: hub.streams == 0, "streams were left behind")


def test_readers_of_two_servers_see_each_event_once_and_in_order_while_one_is_killed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home, owner="me") as kept, ThreadPoolExecutor(2) as readers, ExitStack() as over, ExitStack() as first:
        over.callback(kept.app.state.hub.hang_up)  # a test that fails does not wait for its readers
        killed = first.enter_context(serving(home, owner="me"))
        for server in (kept, killed):  # one process builds a route twice, which its library cannot do at once
            assert server.http.get("/api/v1/jobs/job_nobody/events").status_code == 404
        job = submit(kept.ledger, "film", TASKS)
        heard: list[list[int]] = [[], []]

        def hear(n: int, server: Serving) -> None:
            seen = {"Last-Event-ID": str(heard[n][-1])} if heard[n] else {}
            with server.http.stream("GET", f"/api/v1/jobs/{job.id}/events", headers=seen) as answer:
                heard[n] += [int(line[4:]) for line in answer.iter_lines() if line.startswith("id: ")]

        reading = [readers.submit(hear, n, server) for n, server in enumerate((kept, killed))]
        wait_for(lambda: kept.app.state.hub.streams and killed.app.state.hub.streams, "the readers never came")
        assert work(killed.ledger, TASKS // 2)
        wait_for(lambda: killed.app.state.hub._seen.get(job.id, 0) > TASKS // 2, "it never heard of its own work")
        killed.app.state.hub.hang_up()
        reading[1].result()
        first.close()
        while work(kept.ledger, 3):
            pass
        hear(1, kept)
        reading[0].result()
        assert heard == [list(range(1, kept.ledger.job(job.id).last_event + 1))] * 2


def test_a_stream_that_begins_while_changes_are_skipped_misses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip, asked, released = Jobs.skip_changes, threading.Event(), threading.Event()

    def skip_late(jobs: Jobs, cursor: str = "") -> tuple[bool, str]:
        asked.set()
        assert released.wait(DEADLINE)
        return skip(jobs, cursor)

    monkeypatch.setattr(Jobs, "skip_changes", skip_late)
    with serving(tmp_path / "home", owner="me") as server:
        assert asked.wait(DEADLINE)
        job = submit(server.ledger, "film", 4)
        with server.http.stream("GET", f"/api/v1/jobs/{job.id}/events") as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if line == ": live")
            assert work(server.ledger, 2)
            released.set()
            assert next(line for line in lines if line in ("event: done", ": still here")) == "event: done"


@pytest.mark.parametrize(
    ("looks", "told"), [(0, [": still here"]), (1, ["event: job", ": still here"])], ids=["beginning", "alone"]
)
def test_a_stream_of_all_jobs_that_begins_while_changes_are_skipped_misses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int, told: list[str]
) -> None:
    """While the server passes over the whole history, who follows all jobs is told to come again and look."""
    skip, asked, released, skipped = Jobs.skip_changes, threading.Event(), threading.Event(), list[str]()

    def skip_late(jobs: Jobs, cursor: str = "") -> tuple[bool, str]:
        skipped.append(cursor)
        if len(skipped) > looks:
            asked.set()
            assert released.wait(DEADLINE)
        return skip(jobs, cursor)

    monkeypatch.setattr(event_hub, "ALONE_SECONDS", 0.01)
    monkeypatch.setattr(event_hub, "START_SECONDS", 0.01)
    monkeypatch.setattr(events, "KEEP_ALIVE_SECONDS", 0.5)
    monkeypatch.setattr(Jobs, "skip_changes", skip_late)
    with serving(tmp_path / "home", owner="me") as server:
        assert asked.wait(DEADLINE)
        with server.http.stream("GET", "/api/v1/events") as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if line == ": live")
            submit(server.ledger, "film")
            released.set()
            assert [*islice((line for line in lines if line in ("event: job", ": still here")), 2)] == told


def test_more_than_a_page_of_events_between_two_looks_is_heard_whole(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "KEEP_ALIVE_SECONDS", 0.05)
    job = submit(server.ledger, "film", 700)
    first = server.ledger.job(job.id).last_event
    with server.http.stream("GET", f"/api/v1/jobs/{job.id}/events?after={first}") as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if line == ": live")
        look, held = Jobs.changed, threading.Event()

        def once_all_is_done(jobs: Jobs, cursor: str) -> Any:
            assert held.wait(DEADLINE)
            return look(jobs, cursor)

        monkeypatch.setattr(Jobs, "changed", once_all_is_done)
        while work(server.ledger, 500):
            pass
        last = server.ledger.job(job.id).last_event
        assert last - first > 700
        held.set()
        assert heard(lines) == list(range(first + 1, last + 1))


def heard(lines: Iterator[str]) -> list[int]:
    """The numbers of the events, until the stream ends or nothing more comes for long."""
    numbers, idle = [], 0
    for line in lines:
        if line.startswith("id: "):
            numbers.append(int(line[4:]))
        idle = idle + 1 if line == ": still here" else 0 if line else idle
        if numbers and idle > 100:
            break
    return numbers


def test_who_has_seen_everything_of_a_finished_job_is_told_not_to_come_again(server: Serving) -> None:
    job = submit(server.ledger, "film")
    path = f"/api/v1/jobs/{job.id}/events"
    last = server.ledger.job(job.id).last_event
    assert server.http.get(path, headers={"Last-Event-ID": str(last)}).status_code == 204
    whole = server.http.get(path)
    assert whole.headers["content-type"].startswith("text/event-stream")
    assert whole.headers["x-accel-buffering"] == "no"
    assert whole.text.rstrip().endswith("event: end\ndata: {}")
    assert server.http.get(f"/jobs/{job.id}/events").text.count("\nid: ") == last


def test_a_replay_below_the_oldest_event_is_told_where_the_history_begins(server: Serving) -> None:
    job = submit(server.ledger, "film")
    last = server.ledger.job(job.id).last_event
    server.ledger.control(job.id, JobCommand.TRIM, 0)
    whole = server.http.get(f"/api/v1/jobs/{job.id}/events").text
    first = next(part for part in whole.split("\n\n") if part.startswith("id: "))
    assert first.startswith(f"id: {last - 1}\nevent: truncated\n")
    assert f'"data": {{"before": {last}}}' in first
    listed = server.http.get(f"/api/v1/jobs/{job.id}/history").json()
    assert [event["type"] for event in listed] == ["truncated", "finished"]


def test_a_stream_and_a_history_are_filtered_by_type_and_time(server: Serving) -> None:
    job = submit(server.ledger, "film", 2)
    path = f"/api/v1/jobs/{job.id}"
    with server.http.stream("GET", f"{path}/events", params={"types": "finished"}) as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if line == ": live")
        while work(server.ledger):
            pass
        assert [line for line in lines if line.startswith("event: ")] == ["event: finished", "event: end"]

    def both(**asked: Any) -> list[str]:
        shown = server.http.get(f"{path}/events", params=asked).text
        assert shown.rstrip().endswith("event: end\ndata: {}")
        types = [json.loads(line[6:])["type"] for line in shown.splitlines() if line.startswith('data: {"job"')]
        listed = [event["type"] for event in server.get(f"{path}/history", params=asked)]
        assert types == listed
        return types

    assert both(types=["done", "finished"]) == ["done", "done", "done", "finished"]
    assert both(types="finished", since="2020-01-01") == ["finished"]
    assert both(since="2999-01-01") == []
    last = server.get(f"{path}/history")[-1]
    assert both(since=last["at"], types="finished") == ["finished"]
    assert server.http.get(f"{path}/events", params={"types": "nonsense"}).status_code == 422
    assert server.http.get(f"{path}/events", params={"since": "yesterday"}).status_code == 400


def test_a_filtered_stream_is_told_what_is_no_longer_kept(server: Serving) -> None:
    job = submit(server.ledger, "film")
    server.ledger.control(job.id, JobCommand.TRIM, 0)
    told = server.http.get(f"/api/v1/jobs/{job.id}/events", params={"types": "planned"}).text
    assert [line for line in told.splitlines() if line.startswith("event: ")] == ["event: truncated", "event: end"]


def _told(text: str) -> list[tuple[str, str, int]]:
    """Place, type and sequence of what a stream of output told."""
    found = []
    for part in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in part.splitlines() if ": " in line and line[0] != ":")
        if "data" in lines and lines["event"] != "end":
            found.append((lines.get("id", ""), lines["event"], json.loads(lines["data"])["sequence"]))
    return found


def test_output_of_attempts_is_followed_and_gone_on_with(server: Serving) -> None:
    job = submit(server.ledger, "film", 1)
    (lease,) = server.ledger.claim(WORKER, ["cpu"], 1)
    server.ledger.log(lease.task, lease.fence, 1, ["a line"])
    path, last = f"/api/v1/jobs/{job.id}/output", server.ledger.job(job.id).last_event
    now = _told(server.http.get(path, params={"follow": False, "from_sequence": last + 1}).text)
    assert now == [("", "process_start", 1), ("", "output_data", 2)]
    with server.http.stream("GET", path, headers={"Last-Event-ID": str(last)}) as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if '"text": "a line"' in line)
        server.ledger.complete(WORKER, [Finish(lease.task, lease.fence)])
        rest = list(lines)
    assert rest[-3:] == ["event: end", "data: {}", ""]
    assert f"id: {last + 1}" in rest
    assert "event: process_end" in rest
    assert _told(server.http.get(path, headers={"Last-Event-ID": str(last + 1)}).text) == []
    wait_for(lambda: server.app.state.hub.watches == 0, "it was left behind")


def test_too_many_who_follow_output_at_once_are_refused_too(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/api/v1/jobs/{submit(server.ledger, 'film').id}/output?follow=false"
    assert server.http.get(path.replace("film", "none")).status_code == 404
    monkeypatch.setattr(output, "MOST", 2)
    together = threading.Barrier(2)

    def slowly(*asked: Any) -> Any:
        together.wait(DEADLINE)
        return watch(*asked)

    monkeypatch.setattr(output, "watch_job", slowly)
    with ThreadPoolExecutor(4) as callers:
        answers = [callers.submit(httpx.get, server.url + path, timeout=DEADLINE, verify=PLAIN) for _ in range(4)]
        assert sorted(answer.result().status_code for answer in answers) == [200, 200, 429, 429]
    wait_for(lambda: server.app.state.hub.watches == 0, "it was left behind")


def test_too_many_who_follow_output_are_refused(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit(server.ledger, "film")
    monkeypatch.setattr(output, "MOST", 0)
    answer = server.http.get(f"/api/v1/jobs/{job.id}/output")
    assert (answer.status_code, answer.json()["code"]) == (429, "TooManyAtOnce")
    assert server.http.get("/api/v1/jobs/job_none/output").status_code == 429


@pytest.mark.parametrize("last", ["nonsense", "-1", "1e9", "99999999999999999999999", ""])
def test_a_made_up_number_is_no_trouble(server: Serving, last: str) -> None:
    job = submit(server.ledger, "film")
    answer = server.http.get(f"/api/v1/jobs/{job.id}/events", headers={"Last-Event-ID": last})
    assert answer.status_code in (200, 204)


def test_an_idle_stream_says_that_it_is_there(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "KEEP_ALIVE_SECONDS", 0.05)
    job = submit(server.ledger, "film", 1)
    with server.http.stream("GET", f"/api/v1/jobs/{job.id}/events") as answer:
        assert next(line for line in answer.iter_lines() if line == ": still here")


def test_the_stream_of_all_jobs_tells_each_row_that_changed(server: Serving) -> None:
    with server.http.stream("GET", "/events") as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if line == ": live")
        job = submit(server.ledger, "film", 2)
        data = next(line for line in lines if line.startswith("data: "))
        assert json.loads(data.removeprefix("data: "))["id"] == job.id


def test_a_reader_that_is_too_slow_is_closed_and_holds_nothing() -> None:
    subscriber = event_hub.Subscriber("job_film")
    message = event_hub.Message("data: {}\n\n")
    assert subscriber.put([message] * event_hub.MOST)
    assert not subscriber.put([message])
    assert subscriber.closed
    assert not subscriber.take()


def test_what_is_said_again_for_somebody_who_came_later_is_heard_once() -> None:
    subscriber = event_hub.Subscriber("job_film")
    for first in (3, 5, 4):
        subscriber.put([event_hub.Message("", number) for number in range(first, 8)])
    assert [message.number for message in events.unseen(subscriber.take(), 4)] == [5, 6, 7]


def test_hanging_up_ends_every_stream_at_once(server: Serving) -> None:
    job = submit(server.ledger, "film", 1)
    with server.http.stream("GET", f"/api/v1/jobs/{job.id}/events") as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if line == ": live")
        server.app.state.hub.hang_up()
        assert not [line for line in lines if line.startswith("data: ")]
