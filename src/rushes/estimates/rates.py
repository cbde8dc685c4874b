"""Rates: how long finished tasks took on each kind of machine, computed from the ledger, stored as records.

A record holds the latest tasks of one stage on one kind of machine, so an estimate reads a few records, and a
rebuilt index loses nothing. Learning may be repeated: a task counts once, by its id.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from rushes.blobs.manifests import read_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, NotFound
from rushes.domain.event import Event, EventType
from rushes.domain.grouping import grouped
from rushes.domain.job import Job
from rushes.domain.keys import parse_task_id, short
from rushes.domain.task import Task
from rushes.domain.worker import machine_of
from rushes.ledger.pages import all_events, tasks_by_id
from rushes.ledger.port import Ledger
from rushes.records.port import Conflict, Record, Records

KIND = "rates"  # records of this kind: id = of stage and machine, doc = {"tasks": [...]}; one more keeps the cursor
NEWEST_TASKS = 100  # of one stage on one kind of machine
OF_A_FILM = 4  # of these: chunks of one film are alike, and a long one would drive out all others
NEWEST_JOBS = 200  # that are read at a time: older ones say less about this machine
_CURSOR = "cursor"


@dataclass(frozen=True, slots=True)
class Rate:
    """How long one task took, on how much footage, and how much it made."""

    task: str
    stage: str
    machine: str
    seconds: float
    media_seconds: float
    pixels: int
    at: str
    profile: str = ""  # of the models that it used
    size: int = 0  # bytes of its results
    voiced_seconds: float | None = None  # of speech that was listened to; None if it listens to nothing
    source_bytes: int = 0  # of the part of the original that it is about


@dataclass(frozen=True, slots=True)
class RateHistory:
    """Learns rates from the ledger, and keeps them."""

    ledger: Ledger
    records: Records
    blobs: Blobs
    owner: str

    def of(self, stages: Collection[str], machine: str) -> dict[str, list[Rate]]:
        """The latest rates of each stage on a kind of machine, or on one that is not known any more, newest first."""
        self.learn()
        ids = {stage: (_id(stage, machine), _id(stage, "")) for stage in stages}
        found = self.records.get_many(KIND, self.owner, {id for pair in ids.values() for id in pair})
        known = {id: _read(record) for id, record in found.items()}
        return {stage: newest(r for id in pair for r in known.get(id, ())) for stage, pair in ids.items()}

    def learn(self) -> None:
        """Read the jobs that changed since the last time; of two processes that do so at once, one wins."""
        before = self.records.get(KIND, self.owner, _CURSOR)
        jobs, cursor = self._changed(str(before.doc["cursor"]) if before else "")
        if before and cursor == before.doc["cursor"]:
            return
        finished = (found for job in jobs for found in self._finished(job))
        learnt = grouped(finished, lambda found: _id(found[0].stage, found[0].machine))
        with suppress(Conflict):
            for id, some in learnt.items():
                self._keep(id, some)
            self.records.put(KIND, self.owner, _CURSOR, {"cursor": cursor}, before.version if before else 0)

    def _changed(self, before: str) -> tuple[list[str], str]:
        """The newest jobs that changed after a cursor, and the next cursor."""
        jobs: dict[str, None] = {}
        while True:
            some, cursor = self.ledger.changed(before)
            for job in some:
                jobs.pop(job, None)
                jobs[job] = None
            if cursor == before:
                return list(jobs)[-NEWEST_JOBS:], cursor
            before = cursor

    def _finished(self, id: str) -> Iterator[tuple[Rate, Task, str]]:
        """Rates of a job's finished tasks, still without what they made, each with its task and owner."""
        with suppress(NotFound):
            job = self.ledger.job(id)
            facts = json.loads(job.facts or "{}")
            if not facts or facts.get("stub"):  # made-up answers take no time
                return
            done = {event.task: event for event in all_events(self.ledger, id, types={EventType.DONE}) if event.task}
            for task in tasks_by_id(self.ledger, list(done)):
                rate = _rate(job, task, done[task.id])
                if rate.seconds > 0 and rate.media_seconds > 0:
                    yield rate, task, job.owner

    def _keep(self, id: str, learnt: Iterable[tuple[Rate, Task, str]]) -> None:
        """Keep the newest of what was known and what was learnt; only of these the results are read."""
        before = self.records.get(KIND, self.owner, id)
        known = {rate.task: rate for rate in (_read(before) if before else ())}
        new = {found[0].task: found for found in learnt if found[0].task not in known}
        latest = newest([*known.values(), *(rate for rate, _, _ in new.values())])
        kept = [self._with_results(*new[rate.task]) if rate.task in new else rate for rate in latest]
        doc = {"tasks": [asdict(rate) for rate in kept]}
        self.records.put(KIND, self.owner, id, doc, before.version if before else 0)

    def _with_results(self, rate: Rate, task: Task, owner: str) -> Rate:
        size, voiced = 0, None
        for key in task.question.get("results", {}).values():
            with suppress(DamagedBlob):
                manifest = read_manifest(self.blobs, owner, key)
                size += sum(artifact.size for artifact in manifest.artifacts)
                voiced = manifest.facts["voiced_ms"] / 1000 if "voiced_ms" in manifest.facts else voiced
        return replace(rate, size=size, voiced_seconds=voiced)


def _rate(job: Job, task: Task, event: Event) -> Rate:
    facts, span = json.loads(job.facts), task.span
    duration = int(facts.get("duration_us") or 0) / 1e6
    media_seconds = float(span.seconds) if span else duration
    return Rate(
        task=task.id,
        stage=task.stage,
        machine=machine_of(str(event.data.get("worker") or "")),
        seconds=float(event.data.get("seconds") or 0.0),
        media_seconds=media_seconds,
        source_bytes=int((facts.get("size") or 0) * min(1.0, media_seconds / duration)) if duration else 0,
        pixels=int(facts.get("width") or 0) * int(facts.get("height") or 0),
        at=event.at,
        profile=str(json.loads(job.payload).get("profile", "")),
    )


def newest(rates: Iterable[Rate]) -> list[Rate]:
    """The rates that count, newest first: a few of each film."""
    films = grouped(sorted(rates, key=_age, reverse=True), lambda rate: parse_task_id(rate.task)[0])
    return sorted((rate for some in films.values() for rate in some[:OF_A_FILM]), key=_age, reverse=True)[:NEWEST_TASKS]


def _age(rate: Rate) -> tuple[str, str]:
    return rate.at, rate.task


def _read(record: Record) -> list[Rate]:
    return [Rate(**doc) for doc in record.doc["tasks"]]


def _id(stage: str, machine: str) -> str:
    return "rate_" + short([stage, machine])
