"""The webhook: told once of ends of jobs, dead letters and lost workers; signed, tried again, and on record."""

import hashlib
import hmac
import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from rushes.domain.errors import RushesError
from rushes.domain.event import EventType
from rushes.domain.job import Job, JobState
from rushes.domain.keys import JSON
from rushes.domain.redaction import redact
from rushes.home import Home
from rushes.library.job_events import millis
from rushes.records.port import Conflict, Record
from rushes.telemetry import log

DELIVERY, CURSOR = "delivery", "webhook_cursor"
TOLD = (JobState.COMPLETED, JobState.FAILED)
BACKOFF = (5.0, 30.0, 120.0, 600.0, 3600.0, 14400.0)  # seconds before each further try
UNTRIED = {"tries": 0, "due": 0.0, "done": False}
ANSWER_SECONDS = 10.0
LOOK_SECONDS = 1.0
PAGE = 500
SCAN_SECONDS = 600.0  # between looks at all deliveries, for what a process that is gone has left


class Webhook:
    """Follows the ledger from where the last process stopped, and tells the webhook."""

    def __init__(self, home: Home, describe: Callable[[Job], Mapping[str, JSON]]) -> None:
        """`describe` says how a job is written in a delivery."""
        self._home, self._owner, self._backoff, self._describe = home, home.owner, BACKOFF, describe
        self._due: dict[str, float] = {}  # deliveries that are not over, and when each is tried next
        self._scan_at = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)

    def deliveries(self, cursor: str, limit: int) -> tuple[tuple[Record, ...], str]:
        """What was sent and how it was answered, and the next cursor."""
        return self._home.records.list(DELIVERY, self._owner, cursor, limit)

    def start(self) -> None:
        """Begin, if a webhook is configured."""
        if self._home.settings.webhook:
            self._thread.start()

    def stop(self) -> None:
        """End; what was not told is told by the next process."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(ANSWER_SECONDS + 5)

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                self._look()
                self._deliver()
            except (RushesError, Conflict) as e:
                log.warning("webhook: %s", e)

    def _look(self) -> None:
        """Every job that came to an end becomes a delivery; the first process of all begins with what comes."""
        record = self._home.records.get(CURSOR, self._owner, "ledger")
        if record is None:
            self._begin()
            return
        before = str(record.doc["cursor"])
        while not self._over.is_set():
            jobs, after = self._home.ledger.changed(before)
            for id in jobs:
                self._enter(self._home.ledger.job(id))
            if after != before:
                self._home.records.put(CURSOR, self._owner, "ledger", {"cursor": after})
            if not jobs:
                return
            before = after

    def _begin(self) -> None:
        """Pass over all that was there before there was a webhook, however many pages."""
        jobs, after = self._home.ledger.changed("")
        while jobs and not self._over.is_set():
            jobs, after = self._home.ledger.changed(after)
        if not jobs:
            self._home.records.put(CURSOR, self._owner, "ledger", {"cursor": after}, expected=0)

    def _enter(self, job: Job) -> None:
        """Its end; before that, each step that gives up and each worker that was lost with a part of it."""
        if job.owner != self._owner:
            return
        counts, name = job.counts, f"{job.id}.{millis(job.created_at)}"  # a job that was forgotten may come again
        if job.state in TOLD:
            self._add(f"job.{job.state.value}", job, f"{name}.{job.last_event}")
        elif counts.dead:
            self._add("job.dead_letter", job, f"{name}.dead.{self._last_dead(job.id)}")
        if counts.losses:
            self._add("job.worker_lost", job, f"{name}.lost.{counts.losses}")

    def _last_dead(self, job: str) -> int:
        """The number of the last event of a step that gave up."""
        last = 0
        while found := self._home.ledger.events(job, last, {EventType.DEAD}):
            last = found[-1].number
        return last

    def _add(self, event: str, job: Job, id: str) -> None:
        doc = {"event": event, "job": dict(self._describe(job)), **UNTRIED}
        try:
            entered = self._home.records.put(DELIVERY, self._owner, id, doc, expected=0)
        except Conflict:  # it was entered before, by this process or another
            return
        self._due[entered.id] = 0.0

    def _deliver(self) -> None:
        if time.monotonic() >= self._scan_at:
            self._due = {r.id: float(r.doc["due"]) for r in self._home.all_records(DELIVERY) if not r.doc["done"]}
            self._scan_at = time.monotonic() + SCAN_SECONDS
        for id in [id for id, due in self._due.items() if due <= time.time()]:
            if self._over.is_set():
                return
            self._try(id)

    def _try(self, id: str) -> None:
        """Tell it, unless another process has done so meanwhile or does so now."""
        record = self._home.records.get(DELIVERY, self._owner, id)
        if record and not record.doc["done"] and float(record.doc["due"]) <= time.time():
            record = self._tell(id, record.version, record.doc)
        if record is None or record.doc["done"]:
            del self._due[id]
        else:
            self._due[id] = float(record.doc["due"])

    def _tell(self, id: str, version: int, doc: Mapping[str, JSON]) -> Record:
        """Claim the try first, so that two processes do not tell the same at once."""
        tries = int(doc["tries"]) + 1
        claimed = {**doc, "tries": tries, "due": time.time() + self._wait(tries)}
        mine = self._home.records.put(DELIVERY, self._owner, id, claimed, expected=version)
        answer = self._send(id, {"event": doc["event"], "job": doc["job"], "delivery": id})
        fine = answer.isdigit() and 200 <= int(answer) < 300
        over = fine or tries > len(self._backoff)
        log.log(20 if fine else 30, "webhook %s: %s", id, answer)
        told = {**claimed, "answer": answer, "done": over, "delivered": fine, "at": time.time()}
        return self._home.records.put(DELIVERY, self._owner, id, told, expected=mine.version)

    def _wait(self, tries: int) -> float:
        return self._backoff[min(tries, len(self._backoff)) - 1]

    def _send(self, id: str, doc: Mapping[str, JSON]) -> str:
        """The status of the answer, or what went wrong; redirects are not followed."""
        settings, body, now = self._home.settings, json.dumps(doc).encode(), int(time.time())
        url = urlsplit(settings.webhook)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        headers = {"Content-Type": "application/json", "Rushes-Delivery": id}
        if settings.webhook_secret:
            headers["Rushes-Signature"] = signature(settings.webhook_secret, now, body)
        try:
            connection = kind(url.hostname or "", url.port, timeout=ANSWER_SECONDS)
            try:
                connection.request("POST", f"{url.path or '/'}{'?' + url.query if url.query else ''}", body, headers)
                return str(connection.getresponse().status)
            finally:
                connection.close()
        except (OSError, ValueError, http.client.HTTPException) as e:
            return redact(f"{type(e).__name__}: {e}")


def forget_deliveries(home: Home) -> None:
    """Forget what was told of jobs that are forgotten."""
    cursor, more = "", True
    while more:
        page, cursor = home.records.list(DELIVERY, home.owner, cursor, PAGE)
        jobs = {record.id: record.id.partition(".")[0] for record in page if record.doc["done"]}
        left = {job.id for job in home.ledger.jobs(home.owner, ids=set(jobs.values())).rows} if jobs else set()
        for id in (id for id, job in jobs.items() if job not in left):
            home.records.delete(DELIVERY, home.owner, id)
        more = bool(cursor)


def signature(secret: str, at: int, body: bytes) -> str:
    """What the receiver checks: the moment, and HMAC-SHA256 over moment and body."""
    return f"t={at},v1={hmac.new(secret.encode(), f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"
