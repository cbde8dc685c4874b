"""Alert rules: each is understood, fires when what it is about really happens, and is over when that ends."""

import json
import os
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from rushes.aws.client import Service
from rushes.domain.errors import StoreAway, Throttled
from rushes.domain.task import Failure, Finish, Lease
from rushes.estimates.rates import RateHistory
from rushes.library.job_events import EventPublisher, WorkEvent, WorkEventType
from rushes.library.queues import Queues
from rushes.library.work.worker_figures import WorkerFigures
from rushes.library.work.workers import HomeWorker
from rushes.metrics import FAMILIES, MOST, PROCESS, Registry, text
from rushes.surfaces.http.event_hub import MOST as WAITING
from rushes.surfaces.http.event_hub import Message
from rushes.worker.commands import Complete, Fail
from rushes.worker.inputs import OutboxEntryWritten
from tests.api.kit import PROGRAM, Serving, begin, enter, serving, submit, wait_for, work
from tests.api.test_bounded import bury, counting
from tests.promql import Rule, Vector, scraped
from tests.unit.estimates.test_conversions import both

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "infra" / "observability"
RULES = {rule["alert"]: rule for rule in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]}
BAD = Failure("BadMedia", "it makes no sense", "", "")
Scrape = dict[str, Vector]


def scrape(server: Serving, *more: str) -> Scrape:
    return scraped(server.http.get("/metrics").text, *more)


def fires(alert: str, now: Scrape, before: Scrape | None = None) -> bool:
    return bool(Rule(RULES[alert]["expr"]).fires(now if before is None else before, now))


def lease(stage: str) -> Lease:
    return Lease(f"job_a.{stage}", 1, "job_a", stage, None, "cpu", "{}", 0, 0)


def test_every_rule_is_understood_and_has_what_people_need() -> None:
    for alert, rule in RULES.items():
        assert Rule(rule["expr"]).fires({}, {}) == {}, alert
        assert {"summary", "action"} <= set(rule["annotations"])
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_rules_and_the_dashboard_ask_only_for_what_is_told(server: Serving) -> None:
    told = {line.split()[2] for line in server.http.get("/metrics").text.splitlines() if line.startswith("# TYPE")}
    told |= set(FAMILIES) | {f"{name}_{part}" for name in FAMILIES for part in ("bucket", "sum", "count")}
    texts = [*(rule["expr"] for rule in RULES.values()), (FOLDER / "dashboard.json").read_text()]
    asked = {word for text in texts for word in Rule.names(text)}
    assert asked - told == set()
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 8


def test_dead_letters_fire_until_they_are_dismissed(server: Serving) -> None:
    assert not fires("RushesDeadLetters", scrape(server))
    bury(server.ledger, 1, 2)
    found = scrape(server)
    assert fires("RushesDeadLetters", found)
    assert [dict(labels)["kind"] for labels in found["rushes_dead_letters"]] == ["BadMedia"]
    server.library.jobs.failed.dismiss_all()
    assert not fires("RushesDeadLetters", scrape(server))


def test_a_lane_without_workers_fires_until_one_comes(server: Serving) -> None:
    begin(server.ledger, "waits")
    assert fires("RushesLaneWithoutWorkers", scrape(server))
    enter(server.ledger)
    assert not fires("RushesLaneWithoutWorkers", scrape(server))


def test_nothing_done_fires_while_work_waits_and_a_real_worker_ends_it(home: Path, film: Path) -> None:
    registry = Registry()
    WorkerFigures(registry)  # what a worker tells that has done nothing yet
    with serving(home, sources=tempfile.gettempdir()) as server:
        server.library.add([film])
        idle = scrape(server, text(registry.families()))
        assert fires("RushesNothingDone", idle, idle)
        with working(home) as worker:
            wait_for(lambda: "rushes_task_seconds_count" in read(worker["url"]), "the worker never did anything")
            page = read(worker["url"])
            assert not fires("RushesNothingDone", scrape(server, page), idle)
            assert read(worker["url"].replace("/metrics", "/healthz")) == "ok\n"
            told = scraped(page)
            assert sum(told["rushes_worker_slots"].values()) >= 1
            assert min(told["rushes_worker_memory_bytes"].values()) > 1_000_000
            with pytest.raises(urllib.error.HTTPError, match="404"):
                read(worker["url"].replace("/metrics", "/api/v1/jobs"))


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


@contextmanager
def working(home: Path) -> Iterator[dict[str, Any]]:
    """`rushes worker --metrics 0`, once it tells where."""
    argv = [*PROGRAM, "--home", str(home), "worker", "--slots", "1", "--metrics", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout
            lines = (json.loads(line) for line in process.stdout)
            yield next(line for line in lines if line["message_type"] == "metrics")
        finally:
            process.kill()


def test_a_join_that_fails_again_and_again_fires(server: Serving) -> None:
    registry = Registry()
    figures = WorkerFigures(registry)
    before = scraped(text(registry.families()))
    for stage in ("develop", "develop", "develop", "transcript", "transcript"):
        figures.on_input(OutboxEntryWritten(Fail(lease(stage), BAD, 60.0)))
    assert not fires("RushesJoinFails", scraped(text(registry.families())), before)
    figures.on_input(OutboxEntryWritten(Fail(lease("transcript"), BAD, None)))
    now = scraped(text(registry.families()))
    assert fires("RushesJoinFails", now, before)
    assert not fires("RushesJoinFails", now, now), "half an hour later it is over"


def test_a_throttled_table_fires() -> None:
    before = scraped(text(PROCESS.families()))
    service = Service("dynamodb", "http://127.0.0.1:9", "eu-west-1", "key", "secret", patience=0.1)
    refused = ClientError({"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {}}, "Query")

    def refuse(**_request: Any) -> None:
        raise refused

    service._client.query = refuse
    for _ in range(11):  # each asks at least once
        with pytest.raises(Throttled):
            service.ask("query")
    now = scraped(text(PROCESS.families()))
    assert fires("RushesThrottled", now, before)
    assert not fires("RushesThrottled", now, now)


def test_a_reader_that_is_too_slow_fires(server: Serving) -> None:
    before = scrape(server)
    hub, loop_done = server.app.state.hub, threading.Event()

    def overflow() -> None:
        hub.listen("job_slow", 0)
        hub._deliver("job_slow", [Message("data: 1\n\n")] * (WAITING + 1))
        loop_done.set()

    hub._loop.call_soon_threadsafe(overflow)
    assert loop_done.wait(60)
    now = scrape(server)
    assert fires("RushesEventLoss", now, before)
    assert sum(now["rushes_events_dropped_total"].values()) > WAITING
    assert not fires("RushesEventLoss", now, now)


def test_events_that_the_store_does_not_keep_fire(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    home = replace(server.library.home.settings, queues="films")
    monkeypatch.setattr(type(server.library.home), "settings", home)
    queues = Queues(server.library.home)
    queues.enqueue("films", "one", b"")
    (job,) = queues.dequeue("films", 1, 60)
    publisher, told = EventPublisher(queues), [WorkEvent(1, 0, WorkEventType.OUTPUT_DATA, b"x")]
    before = scrape(server)
    with monkeypatch.context() as meanwhile:

        def away(*_args: object) -> None:
            raise StoreAway("it does not answer")

        meanwhile.setattr(type(server.ledger), "log", away)
        with pytest.raises(StoreAway):
            publisher.publish(job.token, told)
    now = scrape(server)
    assert fires("RushesEventsNotKept", now, before)
    assert publisher.publish(job.token, told) == 1
    assert not fires("RushesEventsNotKept", scrape(server), now)


def test_mail_is_ready_to_be_sent_for_every_alert() -> None:
    doc = yaml.safe_load((FOLDER / "alertmanager.yml").read_text())
    names = {receiver["name"] for receiver in doc["receivers"]}
    assert {doc["route"]["receiver"], *(route["receiver"] for route in doc["route"]["routes"])} <= names
    assert "summary" in doc["receivers"][0]["email_configs"][0]["text"]


def test_a_disk_that_is_nearly_full_fires(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = os.statvfs(server.library.folder)

    def with_free(size: int) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=size // disk.f_frsize, f_frsize=disk.f_frsize)

    monkeypatch.setattr(os, "statvfs", lambda _folder: with_free(4_000_000_000))
    assert fires("RushesDiskNearlyFull", scrape(server))
    shell = HomeWorker(server.library.home).shell
    worker = text(WorkerFigures(Registry()).families(shell.state, shell.free_bytes))
    monkeypatch.setattr(os, "statvfs", lambda _folder: with_free(40_000_000_000))
    assert not fires("RushesDiskNearlyFull", scrape(server))
    assert fires("RushesDiskNearlyFull", scrape(server, worker)), "a worker elsewhere has a disk of its own"


def test_a_worker_that_vanished_fires_until_its_tasks_are_released(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(server.ledger, "held", tasks=1)
    store = server.ledger._store  # type: ignore[attr-defined]  # the clock of SQLite
    now = store._awake
    monkeypatch.setattr(store, "_awake", lambda: now() + 3600)
    assert fires("RushesWorkerGone", scrape(server))
    server.ledger.sweep()
    assert not fires("RushesWorkerGone", scrape(server))


def test_a_part_that_is_away_fires_until_it_is_back(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_args: object, **_more: object) -> None:
        raise StoreAway("it does not answer")

    assert not fires("RushesPartAway", scrape(server))
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(type(server.library.home.index), "videos", away)
        assert fires("RushesPartAway", scrape(server))
    assert not fires("RushesPartAway", scrape(server))


def test_what_waits_is_told_by_lane_and_stage_with_its_age_and_how_far_jobs_are(server: Serving) -> None:
    submit(server.ledger, "film", tasks=4)
    work(server.ledger, 1)
    told = scrape(server)
    (ready,) = [v for k, v in told["rushes_tasks_ready"].items() if {("lane", "cpu"), ("stage", "develop")} <= k]
    assert ready == 3
    assert min(told["rushes_ready_task_age_seconds"].values()) >= 0
    assert [*told["rushes_chunks_done"].values(), *told["rushes_chunks_total"].values()] == [2, 5]
    assert scrape(server)["rushes_http_request_seconds_count"]


def test_scrapes_ask_as_often_with_ten_films_as_with_a_thousand(server: Serving) -> None:
    for n in range(10):
        submit(server.ledger, f"film-{n}", tasks=1)
    server.http.get("/metrics")
    asked = []
    for films in (0, 990):
        for n in range(films):
            begin(server.ledger, f"more-{n}")
        with counting(server) as (ledger, _):
            told = scrape(server)
        asked.append(ledger)
    assert asked[0] == asked[1]
    assert sum(told["rushes_tasks_ready"].values()) == 1000


def test_conversions_are_told_under_the_names_that_their_tables_have(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RateHistory, "of", lambda *_args: both(0, 4))
    text = server.http.get("/metrics").text
    assert 'SegmentConversionDurationSeconds{Cloud="local",SegmentSizeBucket="0-5"} 30' in text
    assert 'ConversionSecondsPerMb{Cloud="local",SegmentSizeBucket="0-5"} 7.5' in text


def test_labels_are_bounded_and_escaped() -> None:
    registry = Registry()
    for n in range(MOST + 50):
        registry.add("rushes_tasks_total", stage=f's"{n}\n', outcome="done")
    lines = text(registry.families()).splitlines()
    assert len(lines) == 2 + MOST + 1
    assert sum(float(line.rpartition(" ")[2]) for line in lines[2:]) == MOST + 50
    assert r'stage="s\"0\n"' in "".join(lines)


def test_a_histogram_adds_up_and_an_adopted_result_took_no_time() -> None:
    registry = Registry()
    figures = WorkerFigures(registry)
    for finish in (Finish("t", 1, seconds=0.2), Finish("t", 1, seconds=400.0), Finish("t", 1, adopted=True)):
        figures.on_input(OutboxEntryWritten(Complete(lease("develop"), finish)))
    told = scraped(text(registry.families()))
    buckets = {dict(k)["le"]: v for k, v in told["rushes_task_seconds_bucket"].items()}
    assert (buckets["0.1"], buckets["0.5"], buckets["300.0"], buckets["1800.0"], buckets["+Inf"]) == (0, 1, 1, 2, 2)
    assert [*told["rushes_task_seconds_sum"].values()] == [400.2]
    outcomes = {dict(k)["outcome"]: v for k, v in told["rushes_tasks_total"].items() if v}
    assert outcomes == {"done": 2, "adopted": 1}
