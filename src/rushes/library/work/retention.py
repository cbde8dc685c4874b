"""Retention: what is no longer needed goes by age, all at once by hand (`rushes gc`) or step by step by workers."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from rushes.blobs.local_disk import remove_unfinished
from rushes.domain.errors import Refused
from rushes.domain.job import Job
from rushes.home import Home
from rushes.jobs import control
from rushes.jobs.maintenance.backup import maintenance_lock
from rushes.jobs.maintenance.deletion import Deletion
from rushes.jobs.maintenance.gc import GcRound, forget_job
from rushes.jobs.maintenance.video_removal import finish_removals, retention_rules
from rushes.jobs.maintenance.work_file import WorkFile
from rushes.library.idempotency import forget_requests
from rushes.library.queue_documents import QueueDocuments
from rushes.library.queues import RECIPE
from rushes.library.webhook import forget_deliveries
from rushes.records.port import Conflict, Record
from rushes.telemetry import log
from rushes.uploads.expiry import expire, finish_all
from rushes.uploads.service import Uploads
from rushes.worker.scratch import clear

ROUND = "retention"  # the kind of record that says who clears up, and when that was last done
EVERY_SECONDS = 86400.0  # between the beginnings of two rounds
LEASE_SECONDS = 300.0  # a round whose record has stood still for so long is taken over
KEEP_SECONDS = 12 * 3600.0  # of a work file: files that are younger than a day are never cleared
Seconds = Callable[[], float]
REST_SECONDS = 60.0  # between looks whether a round is due


def begin_round(home: Home, name: str) -> tuple[GcRound, WorkFile]:
    """A round of this home, or the one of that name that was cut short."""
    finish_removals(home)
    announce = partial(control.announce, home)
    clearing = Deletion(home.ledger, home.blobs, home.owner, retention_rules(home), datetime.now(UTC), announce)
    file = WorkFile(home.folder / f"{name}.sqlite", home.owner, KEEP_SECONDS)
    return GcRound(clearing, file, partial(_forget, home)), file


def tidy(home: Home) -> None:
    """What else is left behind: uploads that nobody goes on with, answered requests, unfinished files, scratch."""
    uploads = Uploads(home)
    finish_all(uploads)
    expire(uploads)
    forget_requests(home)
    forget_deliveries(home)
    home.follower.check(home.owner)
    remove_unfinished(home.blobs)
    clear(home.scratch)


def _forget(home: Home, job: Job) -> None:
    if job.recipe == RECIPE:  # first: a job of the same name would find them
        QueueDocuments(home).forget(job.id)
    forget_job(home.ledger, job)
    if video := json.loads(job.facts or "{}").get("video"):
        home.follower.forget(home.owner, video, job.id)


class Retention:
    """Rounds of gc by the workers of a home: one at a time, a small step now and then, taken over if its worker dies.

    The record is a lease without a clock of its own: it moves with the work, and whoever sees it stand still takes it.
    Two that clear at once do no harm: every step can be repeated.
    """

    def __init__(self, home: Home, by: str, clock: Seconds = time.monotonic, wall: Seconds = time.time) -> None:
        """`by` is another in every process."""
        self._home, self._by, self._clock, self._wall = home, by, clock, wall
        self._mine: Record | None = None
        self._round: tuple[GcRound, WorkFile] | None = None
        self._taken = 0.0  # when the record was last written
        self._seen = (0, 0.0)  # the version that somebody else's record has, and since when

    def step(self) -> float:
        """Do a little, if it is this process's turn; answers how many seconds to wait before the next call."""
        if not self._take():
            return REST_SECONDS
        began = self._clock()
        with suppress(Refused), maintenance_lock(self._home.folder):  # else a backup is being made
            self._work()
            return 0.2 + self._clock() - began  # at most half of the time
        return REST_SECONDS

    def close(self) -> None:
        """Leave the round to the next one."""
        if self._round:
            self._round[1].close()
        self._round = None

    def _work(self) -> None:
        round, file = self._round = self._round or begin_round(self._home, ROUND)
        if round.step():
            return
        tidy(self._home)
        log.info("cleared up: %s", round.report)
        file.remove()
        self._round = None
        self._write(over=True)
        self._mine = None

    def _take(self) -> bool:
        """Whether the round is ours; keeps it so. It is asked for every now and then: a step costs no question."""
        if self._mine and self._clock() - self._taken < LEASE_SECONDS / 10:
            return True
        record = self._home.records.get(ROUND, self._home.owner, ROUND)
        if record and self._mine and record.version == self._mine.version and not record.doc["over"]:
            return self._write(over=False)
        self._mine = None
        if record and not self._is_free(record):
            return False
        self.close()
        self._mine = record
        return self._write(over=False)

    def _is_free(self, record: Record) -> bool:
        """Whether the last round is over and another one due, or nobody has gone on with it."""
        if record.doc["over"]:
            return not 0 <= self._wall() - float(record.doc["began"]) < EVERY_SECONDS
        return self._since(record) >= LEASE_SECONDS

    def _since(self, record: Record) -> float:
        """Seconds since this process first saw the record as it is."""
        if self._seen[0] != record.version:
            self._seen = (record.version, self._clock())
        return self._clock() - self._seen[1]

    def _write(self, *, over: bool) -> bool:
        """Write the record, unless somebody else was quicker."""
        there = self._mine
        goes_on = there is not None and there.doc["by"] == self._by and not there.doc["over"]
        began = there.doc["began"] if there and goes_on else self._wall()
        doc = {"by": self._by, "began": began, "over": over}
        try:
            self._mine = self._home.records.put(
                ROUND, self._home.owner, ROUND, doc, expected=there.version if there else 0
            )
            self._taken = self._clock()
        except Conflict:
            self._mine = None
        return self._mine is not None
