"""The webhook: told once for each end of a job, signed, tried again, on record."""

import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock

import pytest

from rushes.domain.job import Job, JobCommand
from rushes.domain.task import Failure
from rushes.ledger.sql import queries
from rushes.library import Library, webhook
from rushes.library.work.retention import tidy
from tests.api.kit import WORKER, serving, submit, wait_for, work

SECRET = "hook-secret"
BAD = Failure("BadMedia", "it makes no sense", "", "")


class Listener(ThreadingHTTPServer):
    """Keeps what it is told; the first answers are as given, the rest 204."""

    def __init__(self, *answers: int) -> None:
        super().__init__(("127.0.0.1", 0), Ear)
        self.answers, self.heard = list(answers), list[tuple[dict[str, str], bytes]]()


class Ear(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((dict(self.headers.items()), body))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 204)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Nothing."""


@contextmanager
def listening(*answers: int) -> Iterator[Listener]:
    with Listener(*answers) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        yield listener
        listener.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(webhook, "BACKOFF", (0.01, 0.01))


def _describe(job: Job) -> dict[str, str]:
    return {"id": job.id}


def test_each_end_is_told_once_and_signed_and_tried_again_until_it_is_taken(home: Path) -> None:
    with listening(500, 302) as listener:
        url = f"http://127.0.0.1:{listener.server_port}/hook?x=1"
        with serving(home, webhook=url, webhook_secret=SECRET) as server:
            wait_for(lambda: server.library.home.records.get(webhook.CURSOR, "me", "ledger") is not None, "never began")
            job = submit(server.ledger, "film")
            submit(server.ledger, "running", 1)
            wait_for(lambda: deliveries(server.get) == [True], "it was never taken")
    with serving(home, webhook="http://127.0.0.1:1/", webhook_secret=SECRET) as server:
        assert deliveries(server.get) == [True]  # another process does not tell it again
    assert len(listener.heard) == 3
    for headers, body in listener.heard:
        doc = json.loads(body)
        assert (doc["event"], doc["job"]["id"]) == ("job.completed", job.id)
        at, _, _mac = headers["Rushes-Signature"].removeprefix("t=").partition(",v1=")
        assert hmac.compare_digest(headers["Rushes-Signature"], webhook.signature(SECRET, int(at), body))
        assert headers["Rushes-Delivery"] == doc["delivery"]


def test_one_that_never_answers_is_given_up_and_on_record(home: Path) -> None:
    with serving(home, webhook="http://127.0.0.1:1/") as server:
        wait_for(lambda: server.library.home.records.get(webhook.CURSOR, "me", "ledger") is not None, "never began")
        submit(server.ledger, "film")
        wait_for(lambda: deliveries(server.get) == [False], "it was never given up")
        (row,) = server.get("/api/v1/webhook/deliveries")["items"]
        assert row["doc"]["tries"] == 3
        assert "Refused" in row["doc"]["answer"]


def test_what_was_over_before_there_was_a_webhook_is_not_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "CHANGES", 2)
    with Library(home) as library:
        for n in range(5):
            submit(library.home.ledger, f"old{n}")
        hook = webhook.Webhook(library.home, _describe)
        hook._look()
        new = submit(library.home.ledger, "new")
        hook._look()
        told = library.home.records.list(webhook.DELIVERY, "me")[0]
        assert [record.doc["job"]["id"] for record in told] == [new.id]


def test_dead_letters_and_lost_workers_are_told_while_the_job_still_runs(home: Path) -> None:
    with Library(home) as library:
        hook, ledger = webhook.Webhook(library.home, _describe), library.home.ledger
        hook._look()
        job = submit(ledger, "film", tasks=3)
        first, second = ledger.claim(WORKER, ["cpu"], 2)
        ledger.fail(WORKER, first.task, first.fence, BAD, None)
        for _ in range(2):
            hook._look()
        ledger.control(WORKER, JobCommand.LEAVE)  # it still holds a task
        ledger.sweep()
        assert ledger.job(job.id).counts.losses == 1
        hook._look()
        told = {record.id: record.doc["event"] for record in library.home.records.list(webhook.DELIVERY, "me")[0]}
    assert sorted(told.values()) == ["job.dead_letter", "job.worker_lost"]
    assert second.task


def test_a_dead_letter_is_told_once_and_again_when_it_gave_up_again(home: Path) -> None:
    with Library(home) as library:
        hook, ledger = webhook.Webhook(library.home, _describe), library.home.ledger
        hook._look()
        job = submit(ledger, "film", tasks=3)
        for delay, letters in ((None, 1), (0.0, 1), (0.0, 1)):
            (lease,) = ledger.claim(WORKER, ["cpu"], 1)
            ledger.fail(WORKER, lease.task, lease.fence, BAD, delay)
            hook._look()
            assert len(library.home.records.list(webhook.DELIVERY, "me")[0]) == letters
        ledger.revive(job.id)
        for task in ledger.claim(WORKER, ["cpu"], 3)[:1]:
            ledger.fail(WORKER, task.task, task.fence, BAD, None)
        hook._look()
        told = [record.doc["event"] for record in library.home.records.list(webhook.DELIVERY, "me")[0]]
        assert told == ["job.dead_letter"] * 2


def test_a_job_that_was_forgotten_and_is_done_again_is_told_again(home: Path) -> None:
    with Library(home) as library:
        hook, ledger = webhook.Webhook(library.home, _describe), library.home.ledger
        hook._look()
        for n in (1, 2):
            job = submit(ledger, "film")
            for _ in range(2):
                hook._look()
            assert len(library.home.records.list(webhook.DELIVERY, "me")[0]) == n
            ledger.control(job.id, JobCommand.FORGET)


def test_what_was_told_of_forgotten_jobs_is_forgotten(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook.Webhook, "_send", Mock(return_value="200"))
    monkeypatch.setattr(webhook, "PAGE", 2)
    with Library(home) as library:
        hook, ledger = webhook.Webhook(library.home, _describe), library.home.ledger
        hook._look()
        jobs = [submit(ledger, name) for name in ("a", "b", "c", "d")]
        hook._look()
        hook._deliver()
        jobs.append(submit(ledger, "untold"))
        hook._look()
        for job in (jobs[0], jobs[1], jobs[3], jobs[4]):
            ledger.control(job.id, JobCommand.FORGET)
        tidy(library.home)
        left = [record.doc["job"]["id"] for record in library.home.records.list(webhook.DELIVERY, "me")[0]]
        assert left == [jobs[2].id, jobs[4].id]


def test_what_was_told_long_ago_is_not_read_at_every_look(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Library(home) as library:
        send = Mock(return_value="200")
        monkeypatch.setattr(webhook.Webhook, "_send", send)
        monkeypatch.setattr(webhook, "BACKOFF", (0.0,))
        hook, another = webhook.Webhook(library.home, _describe), webhook.Webhook(library.home, _describe)
        hook._look()
        old = submit(library.home.ledger, "old")
        hook._look()
        hook._deliver()
        listed = Mock(wraps=library.home.records.list)
        monkeypatch.setattr(library.home.records, "list", listed)
        new = submit(library.home.ledger, "new")
        for _ in range(3):
            hook._look()
            hook._deliver()
        assert told(send) == [old.id, new.id]
        assert not listed.called
        left = submit(library.home.ledger, "left")
        hook._look()
        another._deliver()  # for a process that is gone
        hook._deliver()
        assert told(send) == [old.id, new.id, left.id]


def test_what_ends_while_no_server_runs_is_told_by_the_next_one_and_once(home: Path) -> None:
    with listening() as listener:
        url = f"http://127.0.0.1:{listener.server_port}/"
        with serving(home, webhook=url) as server:
            wait_for(lambda: server.library.home.records.get(webhook.CURSOR, "me", "ledger") is not None, "never began")
        with Library(home) as library:
            jobs = [submit(library.home.ledger, name).id for name in ("one", "two")]
        for _ in range(2):
            with serving(home, webhook=url) as server:
                wait_for(lambda: deliveries(server.get) == [True, True], "it was never told")
    assert sorted(json.loads(body)["job"]["id"] for _, body in listener.heard) == sorted(jobs)


def test_a_try_that_a_killed_process_began_is_made_again_when_it_is_due(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "BACKOFF", (60.0, 120.0))
    clock = [1000.0]
    monkeypatch.setattr(webhook, "time", Mock(time=lambda: clock[0], monotonic=lambda: clock[0]))
    send = Mock(side_effect=[SystemExit("killed while it waits for the answer"), "500", "200"])
    monkeypatch.setattr(webhook.Webhook, "_send", send)
    with Library(home) as library:
        first = webhook.Webhook(library.home, _describe)
        first._look()
        job = submit(library.home.ledger, "film")
        first._look()
        with pytest.raises(SystemExit):
            first._deliver()
        for at, tries in ((1059.0, 1), (1061.0, 2), (1180.0, 2), (1182.0, 3), (9999.0, 3)):
            clock[0] = at
            webhook.Webhook(library.home, _describe)._deliver()  # each is another process
            assert send.call_count == tries, at
        (record,) = library.home.records.list(webhook.DELIVERY, "me")[0]
        assert (record.doc["tries"], record.doc["delivered"], record.doc["answer"]) == (3, True, "200")
        assert told(send) == [job.id] * 3


def test_of_two_processes_one_tells_and_a_job_that_ends_again_is_told_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Mock(return_value="200")
    monkeypatch.setattr(webhook.Webhook, "_send", send)
    with Library(home) as library:
        two = [webhook.Webhook(library.home, _describe) for _ in range(2)]
        for hook in two:
            hook._look()
        job = submit(library.home.ledger, "film", 1)
        for _ in range(2):
            assert work(library.home.ledger)
            for hook in two:
                hook._look()
            for hook in two:
                hook._deliver()
            library.home.ledger.revive(job.id, [f"{job.id}.develop.00000"], again=True)
            cursor = library.home.records.get(webhook.CURSOR, "me", "ledger")
            assert cursor
            assert library.home.ledger.changed(str(cursor.doc["cursor"]))[0] == (job.id,), "only what came since"
        assert told(send) == [job.id, job.id]


def told(send: Mock) -> list[str]:
    """The jobs that were sent."""
    return [call.args[0].partition(".")[0] for call in send.call_args_list]


def deliveries(get: object) -> list[bool]:
    """Whether each delivery that is over was taken."""
    assert callable(get)
    rows = get("/api/v1/webhook/deliveries")["items"]
    return [row["doc"]["delivered"] for row in rows if row["doc"]["done"]]
