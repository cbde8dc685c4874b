"""Alert rules: each is understood, fires when what it is about really happens, and is over when that ends."""

import json
import os
import socket
import sqlite3
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from rushes.aws.client import Service
from rushes.domain.errors import StoreAway, Throttled
from rushes.domain.job import NewJob
from rushes.domain.task import Draft, Finish, Lease, LeaseStatus, Verdict
from rushes.estimates.rates import RateHistory
from rushes.library.job_events import EventPublisher, WorkEvent, WorkEventType
from rushes.library.queues import Queues
from rushes.library.work.fleet_figures import FleetWatch
from rushes.library.work.worker_figures import WorkerFigures
from rushes.library.work.workers import HomeWorker
from rushes.metrics import FAMILIES, MOST, PROCESS, Registry, text
from rushes.surfaces.http.event_hub import MOST as WAITING
from rushes.worker.commands import Complete
from rushes.worker.inputs import Claimed, OutboxEntryWritten, RenewalReply
from tests.api.kit import PROGRAM, WORKER, Serving, begin, enter, serving, submit, wait_for, work
from tests.api.test_bounded_reads import bury, counting
from tests.promql import Rule, Vector, scraped
from tests.unit.estimates.test_conversions import both

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "infra" / "observability"
RULES = {rule["alert"]: rule for rule in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]}
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
    before = failed(server, "develop", 0)
    assert not fires("RushesJoinFails", failed(server, "develop", 3), before)
    assert not fires("RushesJoinFails", failed(server, "transcript", 2), before)
    now = failed(server, "transcript", 3)
    assert fires("RushesJoinFails", now, before)
    assert not fires("RushesJoinFails", now, now), "half an hour later it is over"


def test_a_stage_of_which_many_attempts_fail_fires(server: Serving) -> None:
    PROCESS.add("rushes_tasks_total", 0, stage="faces", outcome="done")
    before = failed(server, "develop", 0)
    assert not fires("RushesManyFailures", failed(server, "objects", 4), before)
    now = failed(server, "faces", 5)
    found = Rule(RULES["RushesManyFailures"]["expr"]).fires(before, now)
    assert [dict(labels)["stage"] for labels in found] == ["faces"]
    assert not fires("RushesManyFailures", now, now), "half an hour later it is over"
    for _ in range(21):
        WorkerFigures().on_input(OutboxEntryWritten(Complete(lease("faces"), Finish("job_a.faces", 1))))
    assert not fires("RushesManyFailures", scrape(server), before), "one in five may fail"


def test_joins_that_wait_fire_until_they_are_taken(server: Serving) -> None:
    enter(server.ledger)
    planned(server, "transcript", 100)
    assert not fires("RushesJoinsWait", scrape(server))
    planned(server, "segments", 101)
    assert fires("RushesJoinsWait", scrape(server))
    server.ledger.claim(WORKER, ["cpu"], 150)
    assert not fires("RushesJoinsWait", scrape(server))


def planned(server: Serving, stage: str, n: int) -> None:
    """Tasks that nobody can read."""
    for job in (f"job_{stage}{i}" for i in range(n)):
        first = Draft(f"{job}.{stage}", job, stage, None, "{}", "cpu")
        server.ledger.submit(NewJob(job, server.library.home.owner, job, "film.mp4", "toys", "{}"), first)


def failed(server: Serving, stage: str, n: int) -> Scrape:
    """The figures after a worker was given such tasks."""
    planned(server, stage, n)
    assert HomeWorker(server.library.home, slots=1, until_idle=True).run() == 0
    return scrape(server)


@pytest.mark.parametrize(("name", "ask"), [("dynamodb", "list_tables"), ("sqs", "list_queues")])
def test_a_throttled_service_fires_from_its_first_scrape_on(name: str, ask: str) -> None:
    with throttling() as url:
        service = Service(name, url, "eu-west-1", "key", "secret", patience=0.0)
        service.ask(ask)
        before = scraped(text(PROCESS.families()))
        for _ in range(11):
            with pytest.raises(Throttled):
                service.ask(ask)
        now = scraped(text(PROCESS.families()))
    assert fires("RushesThrottled", now, before)
    assert not fires("RushesThrottled", now, now)


@contextmanager
def throttling() -> Iterator[str]:
    """A service of AWS that answers one request."""
    answers = iter([(200, b'{"TableNames": []}')])

    class Busy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = next(answers, (400, b'{"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException"}'))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_reader_that_is_too_slow_fires(server: Serving) -> None:
    server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    job = submit(server.ledger, "film", tasks=3 * WAITING).id
    before = scrape(server)
    with socket.create_connection(server.listener.getsockname()) as reader:
        reader.sendall(f"GET /api/v1/jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert b"200 OK" in reader.recv(100)  # and it reads no more
        while work(server.ledger, WAITING):
            pass
        wait_for(lambda: fires("RushesEventLoss", scrape(server), before), "nobody was told of it")
    now = scrape(server)
    assert sum(now["rushes_events_dropped_total"].values()) > WAITING
    assert not fires("RushesEventLoss", now, now)


def test_events_that_the_store_does_not_keep_fire(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, token = taken(server, monkeypatch)
    told = [WorkEvent(1, 0, WorkEventType.OUTPUT_DATA, b"x")]
    before = scrape(server)
    with somebody_writes(server), pytest.raises(StoreAway):
        publisher.publish(token, told)
    now = scrape(server)
    assert fires("RushesEventsNotKept", now, before)
    assert publisher.publish(token, told) == 1
    assert not fires("RushesEventsNotKept", scrape(server), now)


def taken(server: Serving, monkeypatch: pytest.MonkeyPatch) -> tuple[EventPublisher, str]:
    """What somebody's worker tells with, and the token of the job that it has taken from a queue."""
    monkeypatch.setattr(type(server.library.home), "settings", replace(server.library.home.settings, queues="films"))
    queues = Queues(server.library.home)
    queues.enqueue("films", "one", b"")
    (job,) = queues.dequeue("films", 1, 60)
    return EventPublisher(queues), job.token


@contextmanager
def somebody_writes(server: Serving) -> Iterator[None]:
    """Another program holds the file for longer than one waits for it."""
    server.ledger._store.file.db.execute("PRAGMA busy_timeout = 0")  # type: ignore[attr-defined]
    with ledger_file(server.library.folder) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def ledger_file(home: Path) -> Iterator[sqlite3.Connection]:
    """The file of the ledger as another program opens it."""
    with closing(sqlite3.connect(home / "ledger.sqlite", isolation_level=None)) as db:
        yield db


def test_jobs_of_others_that_wait_or_run_long_do_not_fire(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    taken(server, monkeypatch)
    Queues(server.library.home).enqueue("films", "two", b"")
    worker = Registry()
    WorkerFigures(worker)
    now = scrape(server, text(worker.families()))
    assert sum(now["rushes_tasks_ready"].values()) == sum(now["rushes_tasks_leased"].values()) == 1
    assert not fires("RushesNothingDone", now, now)
    assert not fires("RushesLaneWithoutWorkers", now, now)


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


def test_a_part_that_is_away_fires_until_it_is_back(server: Serving) -> None:
    assert not fires("RushesPartAway", scrape(server))
    with ledger_file(server.library.folder) as newer:  # a newer version has changed it
        newer.execute("UPDATE home SET value = value + 900 WHERE name = 'needed'")
        newer.execute("PRAGMA user_version = 999")
        found = Rule(RULES["RushesPartAway"]["expr"]).fires({}, scrape(server))
        assert [dict(labels)["part"] for labels in found] == ["schema"]
        newer.execute("UPDATE home SET value = value - 900 WHERE name = 'needed'")
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


def test_scrapes_ask_as_often_with_ten_films_as_with_two_hundred(server: Serving) -> None:
    for n in range(10):
        submit(server.ledger, f"film-{n}", tasks=1)
    server.http.get("/metrics")
    asked = []
    for films in (0, 190):
        for n in range(films):
            begin(server.ledger, f"more-{n}")
        with counting(server) as (ledger, _):
            told = scrape(server)
        asked.append(ledger)
    assert asked[0] == asked[1]
    assert sum(told["rushes_tasks_ready"].values()) == 200


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


def test_the_fleet_is_told_while_the_files_of_conversions_cannot_be_read(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_watch: FleetWatch) -> None:
        raise StoreAway("the bucket does not answer")

    monkeypatch.setattr(FleetWatch, "conversions", away)
    assert {"rushes_tasks_ready", "rushes_workers", "rushes_free_bytes"} <= {
        line.split()[2] for line in server.http.get("/metrics").text.splitlines() if line.startswith("# TYPE")
    }


def test_an_attempt_ends_once_and_what_the_ledger_refused_was_not_done() -> None:
    registry = Registry()
    figures = WorkerFigures(registry)
    leases = [lease("develop")._replace(task=f"job_a.develop.{n:05d}", fence=2) for n in range(4)]
    done, refused, gone, cancelled = leases
    lost = {(one.task, 2): LeaseStatus.LOST for one in (done, refused, gone)}
    for input in (
        Claimed(("cpu",), tuple(leases), 4),
        OutboxEntryWritten(Complete(done, Finish(done.task, 2))),
        OutboxEntryWritten(Complete(refused, Finish(refused.task, 2)), Verdict.LOST),
        OutboxEntryWritten(Complete(cancelled, Finish(cancelled.task, 2)), Verdict.CANCELLED),
        RenewalReply(lost, drain=False, gone=False),  # asked while the outcomes were written
        RenewalReply({(gone.task, 1): LeaseStatus.LOST}, drain=False, gone=False),
    ):
        figures.on_input(input)
    told = scraped(text(registry.families()))["rushes_tasks_total"]
    counts = {dict(k)["outcome"]: v for k, v in told.items() if dict(k)["stage"] == "develop" and v}
    assert counts == {"done": 1, "lost": 2}


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
