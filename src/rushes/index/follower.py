"""The follower: brings the index up to date with what the ledger and the records say has changed, in film time.

At least once, idempotent, and safe to kill anywhere: what was begun is queued in the index itself.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from rushes.blobs.manifests import parse_manifest, written
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, NotFound
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job
from rushes.domain.keys import JSON, manifest_key
from rushes.domain.observation import MEDIA_TYPE, Observation, load
from rushes.domain.result import Manifest
from rushes.domain.span import Span
from rushes.domain.task import Task, TaskState
from rushes.domain.worker import machine_of
from rushes.index.deleted_jobs import GONE, gone_among
from rushes.index.face_clustering import FACE, KEY, PERSON, Gatherer
from rushes.index.people import Person
from rushes.index.port import Correction, Index, Offer, Rate, Run
from rushes.index.run_selection import Candidate, Policy, choose
from rushes.ledger.port import Ledger
from rushes.records.port import Record, Records
from rushes.telemetry import log

NAME = "name"  # records of this kind name a video: id = the video's, doc = {"name": ...}
CORRECTION = "correction"  # say what stands at a place: doc = {"video", "kind", "start_us", "end_us", "text"}
SELECTION = "selection"  # say which run counts: id = video.kind (or *.kind for all), doc = {"run", "profile"}
SIDECAR = "sidecar-"  # what keys begin with that are no results but were read from beside a film
_FINISHED = (EventType.DONE, EventType.ADOPTED)
_PAGE = 200
_TOGETHER = 50  # jobs whose events are held at a time


@dataclass(frozen=True, slots=True)
class _Read:
    """What one finished task brings."""

    offers: tuple[Offer, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    size: int = 0
    voiced_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _News:
    """What is new of one job: its events after a number, and its row, read after them: their plan is on it."""

    id: str
    number: int
    events: Sequence[Event]
    job: Job | None


@dataclass(frozen=True, slots=True)
class Follower:
    """Asks what changed, reads manifests and artifacts, and decides which run of each kind readers see."""

    ledger: Ledger
    records: Records
    blobs: Blobs
    index: Index

    def catch_up(self, limit: int = 1000, patience: float = 2.0) -> int:
        """Read up to `limit` changed jobs into the index; answers how many (0 also while another process does it)."""
        with self.index.alone(patience) as mine:
            return self._catch_up(limit) if mine else 0

    def reindex(self, patience: float = 60.0) -> int:
        """Make the whole index anew; answers how many jobs were read."""
        with self.index.alone(patience) as mine:
            if not mine:
                return 0
            self.index.reset()
            total = 0
            while read := self._catch_up(1000):
                total += read
                if not self.index.queued(1):
                    break
            return total

    def check(self, owner: str = "") -> int:
        """Take out what the ledger does not know any more (set aside by gc or repair); answers how many results."""
        gone = 0
        with self.index.alone(60.0) as mine:
            for whose, rows in groupby(self.index.keys(owner) if mine else (), key=lambda row: row[0]):
                gone += self._forget_unknown(whose, [key for _, key in rows])
            self._settle_all()
            self._gatherer.gather()
        return gone

    def _catch_up(self, limit: int) -> int:
        self._read_records()
        self._queue_changed()
        jobs = self.index.queued(limit)
        for at in range(0, len(jobs), _TOGETHER):
            self._follow_some([self._news(*some) for some in jobs[at : at + _TOGETHER]])
        self._settle_all()
        self._gatherer.gather()
        return len(jobs)

    def _queue_changed(self) -> None:
        before = self.index.cursor("ledger")
        while True:
            changed, cursor = self.ledger.changed(before)
            if cursor == before:
                return
            self.index.queue("ledger", cursor, changed)
            before = cursor

    def _read_records(self) -> None:
        before = self.index.cursor("records")
        changed, cursor = self.records.changed(before)
        for record in changed:
            self._read_record(record)
        if cursor != before:
            self.index.queue("records", cursor)

    def _read_record(self, record: Record) -> None:
        if record.kind == NAME:
            name = None if record.deleted else str(record.doc.get("name") or "") or None
            self.index.rename(record.owner, record.id, name)
        elif record.kind == CORRECTION:
            self.index.correct(record.owner, record.id, None if record.deleted else _correction(record))
        elif record.kind == SELECTION:
            video = record.id.rpartition(".")[0]
            self.index.unsettle(record.owner, "" if video == "*" else video)
        elif record.kind == PERSON:
            self._gatherer.stale(record.owner)
        elif record.kind == GONE and not record.deleted:
            self._drop(record.owner, record.id, set(record.doc.get("jobs") or ()))

    def _drop(self, owner: str, video: str, jobs: set[str]) -> None:
        """Its jobs that were deleted leave the index; whatever else is known of it is read again."""
        row = self.index.video(owner, video)
        if row and jobs.intersection(row.jobs):
            self.index.drop(owner, video)
            self.index.queue("records", self.index.cursor("records"), set(row.jobs) - jobs)
            self._gatherer.stale(owner)

    @property
    def _gatherer(self) -> Gatherer:
        return Gatherer(self.records, self.blobs, self.index)

    def _news(self, id: str, number: int) -> _News:
        events, job = self._events(id, number), None
        with suppress(NotFound):
            job = self.ledger.job(id)
        return _News(id, number, events, job)

    def _follow_some(self, some: Sequence[_News]) -> None:
        gone = gone_among(self.records, [news.job for news in some if news.job])
        for news in some:
            self._follow(news, gone=news.id in gone)
            self._settle_all()

    def _follow(self, news: _News, *, gone: bool) -> None:
        if news.job is None or gone:
            return self.index.met(news.id, news.number)
        if news.job.facts and (news.events or not news.number):
            self._take_in(news.job, news.events, everything=not news.number)
        return self.index.met(news.id, news.events[-1].number if news.events else news.number)

    def _events(self, job: str, after: int) -> Sequence[Event]:
        found: list[Event] = []
        while page := self.ledger.events(job, after):
            found += page
            after = page[-1].number
        return found

    def _take_in(self, job: Job, events: Sequence[Event], *, everything: bool) -> None:
        facts = json.loads(job.facts)
        if facts.get("trial"):
            return self._learn(job, events, facts)
        run = Run(job.id, job.owner, facts["video"], job.recipe, job.state.value, job.created_at, facts)
        self.index.take_in(run, (), {}, ())
        times = {e.task: e for e in events if e.type is EventType.DONE and e.task}
        for page in self._finished(job.id, events, everything=everything):
            read = [self._results(run, task) for task in page]
            names = dict(name for r in read for name in r.names)
            rates = self._rates(zip(page, read, strict=True), times, facts)
            self.index.take_in(run, [offer for r in read for offer in r.offers], names, rates)
        if any(e.type in {EventType.REVIVED, EventType.FINISHED} for e in events):
            known = {o.key for o, _ in self.index.offers(job.owner, run.video)}
            self._forget_unknown(job.owner, known)
        return None

    def _learn(self, job: Job, events: Sequence[Event], facts: Mapping[str, JSON]) -> None:
        """Of a trial only its rates are kept: nobody sees its results."""
        times = {e.task: e for e in events if e.type is EventType.DONE and e.task}
        run = Run(job.id, job.owner, facts["video"], job.recipe, job.state.value, job.created_at, facts)
        for page in self._finished(job.id, events, everything=True):
            self.index.learn(self._rates(((task, self._results(run, task)) for task in page), times, facts))

    def _finished(self, job: str, events: Sequence[Event], *, everything: bool) -> Iterator[Sequence[Task]]:
        """Tasks that are done now: those of the events, or all of them, because old events are not kept for ever."""
        if everything:
            yield from self._pages(job, TaskState.DONE)
            return
        ids = list(dict.fromkeys(e.task for e in events if e.type in _FINISHED and e.task))
        for at in range(0, len(ids), _PAGE):
            found = self.ledger.tasks(ids=ids[at : at + _PAGE]).rows
            yield [task for task in found if task.state is TaskState.DONE]

    def _results(self, run: Run, task: Task) -> _Read:
        offers: list[Offer] = []
        names: list[tuple[str, str]] = []
        size, voiced = 0, None
        for key in _spec(task).get("results", {}).values():
            data = written(self.blobs, manifest_key(run.owner, key))
            manifest = _manifest(data, key)
            if manifest is None or data is None:
                continue
            sha256 = hashlib.sha256(data).hexdigest()
            kinds, profile = self._kinds(run.owner, manifest), manifest.provenance.model_profile
            offers += [
                Offer(run.owner, run.video, run.job, task.stage, task.chunk, kind, key, sha256, profile)
                for kind in kinds
            ]
            names += [(a.publish, key) for a in manifest.artifacts if a.publish and _is_shown(a.publish)]
            size += sum(a.size for a in manifest.artifacts)
            voiced = manifest.facts["voiced_ms"] / 1000 if "voiced_ms" in manifest.facts else voiced
        return _Read(tuple(offers), tuple(names), size, voiced)

    def _kinds(self, owner: str, manifest: Manifest) -> list[str]:
        said = manifest.facts.get("kinds")
        if isinstance(said, list):
            return sorted(map(str, said))
        return sorted({line.kind for line in self._observations(owner, manifest)})

    def _observations(self, owner: str, manifest: Manifest) -> list[Observation]:
        found: list[Observation] = []
        for artifact in manifest.artifacts:
            if artifact.media_type == MEDIA_TYPE:
                try:
                    with self.blobs.open(owner, artifact.sha256) as file:
                        found += load(file.read())
                except (DamagedBlob, ValueError, KeyError, TypeError) as error:
                    log.warning("result %s is left out of the index: %s", manifest.key, error)
        return found

    def _rates(
        self, read: Iterable[tuple[Task, _Read]], times: Mapping[str, Event], facts: Mapping[str, JSON]
    ) -> list[Rate]:
        rates = [_rate(task, times[task.id], facts, found) for task, found in read if task.id in times]
        return [rate for rate in rates if rate.seconds > 0 and rate.media_seconds > 0]

    def _forget_unknown(self, owner: str, keys: Iterable[str]) -> int:
        wanted = [key for key in keys if not key.startswith(SIDECAR)]
        known: set[str] = set()
        for at in range(0, len(wanted), _PAGE):
            known |= self.ledger.known(owner, wanted[at : at + _PAGE]).keys()
        gone = [key for key in wanted if key not in known]
        if gone:
            self.index.forget(owner, gone)
        return len(gone)

    def _settle_all(self) -> None:
        for owner, video in self.index.unsettled():
            self._settle(owner, video)

    def _settle(self, owner: str, video: str) -> None:
        """Decide for each kind whose observations readers see, and load what is missing.

        What was read from beside a film counts where no run offers the kind, and while it is shown: it is no result.
        """
        shown = {place for place in self.index.shown(owner, video) if place[1] != KEY}
        offered = [(o, at) for o, at in self.index.offers(owner, video) if not _is_beside(o) or _place(o) in shown]
        candidates = [
            Candidate(o.kind, o.job, "" if _is_beside(o) else at, o.stage, o.chunk is None, o.profile)
            for o, at in offered
        ]
        chosen = choose(candidates, self._done, self._policies(owner, video, {o.kind for o, _ in offered}))
        wanted = {_place(o): o for o, _ in offered if chosen.get(o.kind) == (o.job, o.stage)}
        drop = [(kind, key) for kind, key, sha256 in shown if (kind, key, sha256) not in wanted]
        add = [(o, self._lines(o)) for place, o in sorted(wanted.items()) if place not in shown]
        if any(o.kind == FACE for o, _ in add) or any(kind == FACE for kind, _ in drop):
            faces = [o for _, o in sorted(wanted.items()) if o.kind == FACE]
            self._gatherer.keep(owner, video, [(o, self._lines(o)) for o in faces])
        self.index.show(owner, video, add, drop)

    def _policies(self, owner: str, video: str, kinds: Iterable[str]) -> dict[str, Policy]:
        found: dict[str, Policy] = {}
        for kind in kinds:
            ids = (f"{video}.{kind}", f"*.{kind}")
            record = next((r for id in ids if (r := self.records.get(SELECTION, owner, id))), None)
            if record:
                found[kind] = Policy(str(record.doc.get("run") or ""), str(record.doc.get("profile") or ""))
        return found

    def run_lines(self, owner: str, video: str, job: str, kind: str) -> list[Observation]:
        """What one run offers of a kind, whether it is shown or not, in order of time; nobody has corrected it."""
        offers = [o for o, _ in self.index.offers(owner, video) if (o.job, o.kind) == (job, kind)]
        whole = [o for o in offers if o.chunk is None]
        found = [line for o in whole or sorted(offers, key=lambda o: (o.chunk or 0, o.key)) for line in self._lines(o)]
        return sorted(found, key=lambda line: (line.span.start_us, line.span.end_us))

    def people(self, owner: str) -> list[Person]:
        """Everybody whose face is known."""
        return self._gatherer.people(owner)

    def _lines(self, offer: Offer) -> list[Observation]:
        if _is_beside(offer):
            shown = _place(offer) in self.index.shown(offer.owner, offer.video)
            return list(self.index.lines(offer.owner, offer.video, offer.kind)) if shown else []
        manifest = _manifest(written(self.blobs, manifest_key(offer.owner, offer.key)), offer.key)
        found = self._observations(offer.owner, manifest) if manifest else []
        zero = Fraction(*json.loads(self.ledger.job(offer.job).facts).get("start", (0, 1)))
        return [line.moved(-zero) for line in found if line.kind == offer.kind]

    def _done(self, job: str, stage: str) -> bool:
        return all(task.state is TaskState.DONE for page in self._pages(job, stage=stage) for task in page)

    def _pages(self, job: str, state: TaskState | None = None, stage: str = "") -> Iterator[Sequence[Task]]:
        cursor, first = "", True
        while cursor or first:
            page = self.ledger.tasks(job, state, stage, cursor=cursor, limit=_PAGE)
            yield page.rows
            cursor, first = page.cursor, False


def _place(offer: Offer) -> tuple[str, str, str]:
    return offer.kind, offer.key, offer.manifest


def _is_beside(offer: Offer) -> bool:
    return offer.key.startswith(SIDECAR)


def _correction(record: Record) -> Correction | None:
    try:
        doc = record.doc
        place = (str(doc["video"]), str(doc["kind"]), int(doc["start_us"]), int(doc["end_us"]))
        return Correction(record.id, *place, str(doc["text"]))
    except (KeyError, TypeError, ValueError) as error:
        log.warning("correction %s is left out: %s", record.id, error)
        return None


def _rate(task: Task, event: Event, facts: Mapping[str, JSON], read: _Read) -> Rate:
    span = _spec(task).get("span")
    return Rate(
        task=task.id,
        stage=task.stage,
        machine=machine_of(str(event.data.get("worker") or "")),
        seconds=float(event.data.get("seconds") or 0.0),
        media_seconds=float(Span.from_json(span).seconds) if span else int(facts.get("duration_us") or 0) / 1e6,
        pixels=int(facts.get("width") or 0) * int(facts.get("height") or 0),
        at=event.at,
        size=read.size,
        voiced_seconds=read.voiced_seconds,
    )


def _spec(task: Task) -> Mapping[str, JSON]:
    doc = json.loads(task.spec or "{}")
    return doc if isinstance(doc, dict) else {}


def _manifest(data: bytes | None, key: str) -> Manifest | None:
    try:
        return parse_manifest(data, key) if data is not None else None
    except DamagedBlob as error:
        log.warning("result %s is left out of the index: %s", key, error)
        return None


def _is_shown(name: str) -> bool:
    return name.endswith("/index.m3u8") or (name.startswith("thumbs/") and name.endswith(".jpg"))
