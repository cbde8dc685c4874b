"""The follower: brings the index up to date with changes of the ledger and the records, in film time.

At least once, idempotent, and safe to kill anywhere: what was begun is queued in the index itself.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from rushes.blobs.manifests import parse_manifest, written
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, NotFound
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job
from rushes.domain.keys import manifest_key
from rushes.domain.observation import MEDIA_TYPE, Observation, load
from rushes.domain.result import Manifest
from rushes.domain.task import Task, TaskState
from rushes.index import changes
from rushes.index.changes import Correction, IndexedResult, Run
from rushes.index.deleted_jobs import DELETED, deleted_among
from rushes.index.people import FACE, PERSON, Person
from rushes.index.people.updater import KEY, PeopleUpdater
from rushes.index.port import Index, find_video
from rushes.index.run_selection import Candidate, Policy, choose
from rushes.ledger.pages import all_events, all_tasks, tasks_by_id
from rushes.ledger.port import Ledger
from rushes.records.port import Record, Records
from rushes.telemetry import log

NAME = "name"  # records of this kind name a video: id = the video's, doc = {"name": ...}
CORRECTION = "correction"  # correct a range: doc = {"video", "kind", "start_us", "end_us", "text"}
SELECTION = "selection"  # say which run counts: id = video.kind (or *.kind for all), doc = {"run", "profile"}
SIDECAR_FILE = "sidecar"  # name a sidecar that was read in: doc = {"path": ...}
SIDECAR = "sidecar-"  # what keys begin with that are no results but were read from beside a film
_FINISHED = (EventType.DONE, EventType.ADOPTED)
_PAGE = 200
_TOGETHER = 50  # jobs whose events are held at a time


@dataclass(frozen=True, slots=True)
class _JobUpdate:
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
    stub: bool = False  # of a home whose answers are made up: such jobs are in its index, and no others

    def catch_up(self, limit: int = 1000, patience: float = 2.0) -> int:
        """Read up to `limit` changed jobs into the index; answers how many (0 also while another process does it)."""
        with self.index.lock(patience) as mine:
            return self._catch_up(limit) if mine else 0

    def reindex(self, patience: float = 60.0) -> int:
        """Build the whole index again; answers how many jobs were read."""
        with self.index.lock(patience) as mine:
            if not mine:
                return 0
            self.index.apply(changes.Reset())
            total = 0
            while read := self._catch_up(1000):
                total += read
                if not self.index.backlog(1).jobs:
                    break
            return total

    def check(self, owner: str) -> int:
        """Take out what the ledger does not know any more (set aside by gc or repair); answers how many results."""
        removed = 0
        with self.index.lock(60.0) as mine:
            for video in self.index.catalog(owner) if mine else ():
                removed += self._remove_unknown(owner, video.id)
            self._select_all()
            self._people.update()
        return removed

    def forget(self, owner: str, video: str, job: str) -> None:
        """A job is no longer in the ledger: whatever else is known of its video is read again."""
        with self.index.lock(60.0) as mine:
            if mine:
                self._drop(owner, video, {job})
                self._select_all()

    def _catch_up(self, limit: int) -> int:
        self._read_records()
        self._queue_changed()
        jobs = self.index.backlog(limit).jobs
        for at in range(0, len(jobs), _TOGETHER):
            self._follow_some([self._read_job(*some) for some in jobs[at : at + _TOGETHER]])
        self._select_all()
        self._people.update()
        return len(jobs)

    def _queue_changed(self) -> None:
        before = self.index.cursor("ledger")
        while True:
            changed, cursor = self.ledger.changed(before)
            if cursor == before:
                return
            self.index.apply(changes.CursorMove("ledger", cursor, changed))
            before = cursor

    def _read_records(self) -> None:
        before = self.index.cursor("records")
        changed, cursor = self.records.changed(before)
        for record in changed:
            self._read_record(record)
        if cursor != before:
            self.index.apply(changes.CursorMove("records", cursor))

    def _read_record(self, record: Record) -> None:
        if record.kind == NAME:
            name = None if record.deleted else str(record.doc.get("name") or "") or None
            self.index.apply(changes.VideoRename(record.owner, record.id, name))
        elif record.kind == CORRECTION:
            correction = None if record.deleted else parse_correction(record)
            self.index.apply(changes.CorrectionUpdate(record.owner, record.id, correction))
        elif record.kind == SELECTION:
            video = record.id.rpartition(".")[0]
            self.index.apply(changes.Reselection(record.owner, "" if video == "*" else video))
        elif record.kind == PERSON:
            self._people.mark_stale(record.owner)
        elif record.kind == DELETED and not record.deleted:
            self._drop(record.owner, record.id, set(record.doc.get("jobs") or ()))

    def _drop(self, owner: str, video: str, jobs: set[str]) -> None:
        """Its jobs that were deleted leave the index; whatever else is known of it is read again."""
        row = find_video(self.index, owner, video)
        if row and jobs.intersection(row.jobs):
            left = changes.CursorMove("records", self.index.cursor("records"), set(row.jobs) - jobs)
            self.index.apply(changes.VideoRemoval(owner, video), left)
            self._people.mark_stale(owner)

    @property
    def _people(self) -> PeopleUpdater:
        return PeopleUpdater(self.records, self.blobs, self.index)

    def _read_job(self, id: str, number: int) -> _JobUpdate:
        events, job = list(all_events(self.ledger, id, number)), None
        with suppress(NotFound):
            job = self.ledger.job(id)
        if job and job.last_event < number:  # the ledger was lost, or restored as it was before: read all of it again
            number, events = 0, list(all_events(self.ledger, id))
        return _JobUpdate(id, number, events, job)

    def _follow_some(self, some: Sequence[_JobUpdate]) -> None:
        deleted = deleted_among(self.records, [update.job for update in some if update.job])
        for update in some:
            self._follow(update, deleted=update.id in deleted)
            self._select_all()

    def _follow(self, update: _JobUpdate, *, deleted: bool) -> None:
        if update.job is None or deleted:
            return self.index.apply(changes.JobRead(update.id, update.number))
        if update.job.facts and (update.events or not update.number):
            missed = any(event.type is EventType.TRUNCATED for event in update.events)
            self._take_in(update.job, update.events, everything=missed or not update.number)
        return self.index.apply(
            changes.JobRead(update.id, update.events[-1].number if update.events else update.number)
        )

    def _take_in(self, job: Job, events: Sequence[Event], *, everything: bool) -> None:
        facts = json.loads(job.facts)
        if facts.get("trial") or facts.get("stub", False) != self.stub:  # nobody sees its results here
            return
        run = Run(job.id, job.owner, facts["video"], job.recipe, job.state.value, job.created_at, facts)
        self.index.apply(changes.RunUpdate(run))
        done = self._finished(job.id, events, everything=everything)
        while page := list(islice(done, _PAGE)):
            read = [self._results(run, task) for task in page]
            published = {name: key for _, names in read for name, key in names}
            self.index.apply(changes.RunUpdate(run, [result for results, _ in read for result in results], published))
        if any(e.type in {EventType.REVIVED, EventType.FINISHED} for e in events):
            self._remove_unknown(job.owner, run.video)

    def _finished(self, job: str, events: Sequence[Event], *, everything: bool) -> Iterator[Task]:
        """Tasks that are done now: those of the events, or all of them, because old events expire."""
        if everything:
            return iter(all_tasks(self.ledger, job, TaskState.DONE))
        ids = list(dict.fromkeys(e.task for e in events if e.type in _FINISHED and e.task))
        return (task for task in tasks_by_id(self.ledger, ids) if task.state is TaskState.DONE)

    def _results(self, run: Run, task: Task) -> tuple[list[IndexedResult], list[tuple[str, str]]]:
        """What a finished task made: its results by kind, and published names with their keys."""
        results: list[IndexedResult] = []
        names: list[tuple[str, str]] = []
        for key in task.question.get("results", {}).values():
            data = written(self.blobs, manifest_key(run.owner, key))
            manifest = _manifest(data, key)
            if manifest is None or data is None:
                continue
            made = (run.owner, run.video, run.job, task.stage, task.chunk)
            sha256, profile = hashlib.sha256(data).hexdigest(), manifest.provenance.model_profile
            results += [IndexedResult(*made, kind, key, sha256, profile) for kind in self._kinds(run.owner, manifest)]
            names += [(a.publish, key) for a in manifest.artifacts if a.publish and _is_shown(a.publish)]
        return results, names

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
                    log.warning("result %s is not indexed: %s", manifest.key, error)
        return found

    def _remove_unknown(self, owner: str, video: str) -> int:
        """Take out results of a video that the ledger does not know any more; answers how many."""
        state = self.index.state(owner, video)
        keys = {result.key for result, _ in state.results} | {*state.published.values()}
        wanted = sorted(key for key in keys if not key.startswith(SIDECAR))
        known: set[str] = set()
        for at in range(0, len(wanted), _PAGE):
            known |= self.ledger.known(owner, wanted[at : at + _PAGE]).keys()
        unknown = [key for key in wanted if key not in known]
        if unknown:
            self.index.apply(changes.ResultRemoval(owner, unknown))
        return len(unknown)

    def _select_all(self) -> None:
        for owner, video in self.index.backlog(0).videos:
            self._select(owner, video)

    def _select(self, owner: str, video: str) -> None:
        """Decide for each kind whose observations readers see, and load what is missing.

        What was read from beside a film counts where no run offers the kind, and while it is shown: it is no result.
        """
        state = self.index.state(owner, video)
        shown = {id for id in state.shown if id[1] != KEY}
        offered = [(r, at) for r, at in state.results if not _is_sidecar(r) or _id(r) in shown]
        candidates = [
            Candidate(r.kind, r.job, "" if _is_sidecar(r) else at, r.stage, r.chunk is None, r.profile)
            for r, at in offered
        ]
        chosen = choose(candidates, self._done, self._policies(owner, video, {r.kind for r, _ in offered}))
        wanted = {_id(r): r for r, _ in offered if chosen.get(r.kind) == (r.job, r.stage)}
        drop = [(kind, key) for kind, key, sha256 in shown if (kind, key, sha256) not in wanted]
        add = [(r, self._lines(r)) for id, r in sorted(wanted.items()) if id not in shown]
        if any(r.kind == FACE for r, _ in add) or any(kind == FACE for kind, _ in drop):
            faces = [r for _, r in sorted(wanted.items()) if r.kind == FACE]
            self._people.replace_faces(owner, video, [(r, self._lines(r)) for r in faces])
        self.index.apply(changes.SelectionUpdate(owner, video, add, drop))

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
        results = [r for r, _ in self.index.state(owner, video).results if (r.job, r.kind) == (job, kind)]
        whole = [r for r in results if r.chunk is None]
        found = [line for r in whole or sorted(results, key=lambda r: (r.chunk or 0, r.key)) for line in self._lines(r)]
        return sorted(found, key=lambda line: (line.span.start_us, line.span.end_us))

    def people(self, owner: str) -> list[Person]:
        """Everybody whose face is known."""
        return self._people.people(owner)

    def _lines(self, result: IndexedResult) -> list[Observation]:
        if _is_sidecar(result):
            shown = _id(result) in self.index.state(result.owner, result.video).shown
            return list(self.index.lines(result.owner, result.video, result.kind)) if shown else []
        manifest = _manifest(written(self.blobs, manifest_key(result.owner, result.key)), result.key)
        found = self._observations(result.owner, manifest) if manifest else []
        zero = Fraction(*json.loads(self.ledger.job(result.job).facts).get("start", (0, 1)))
        return [line.moved(-zero) for line in found if line.kind == result.kind]

    def _done(self, job: str, stage: str) -> bool:
        return all(task.state is TaskState.DONE for task in all_tasks(self.ledger, job, stage=stage))


def _id(result: IndexedResult) -> tuple[str, str, str]:
    return result.kind, result.key, result.manifest


def _is_sidecar(result: IndexedResult) -> bool:
    return result.key.startswith(SIDECAR)


def parse_correction(record: Record) -> Correction | None:
    """What a record of a correction says; None if it is none."""
    try:
        doc = record.doc
        where = (str(doc["video"]), str(doc["kind"]), int(doc["start_us"]), int(doc["end_us"]))
        return Correction(record.id, *where, str(doc["text"]))
    except (KeyError, TypeError, ValueError) as error:
        log.warning("ignored correction %s: %s", record.id, error)
        return None


def _manifest(data: bytes | None, key: str) -> Manifest | None:
    try:
        return parse_manifest(data, key) if data is not None else None
    except DamagedBlob as error:
        log.warning("result %s is not indexed: %s", key, error)
        return None


def _is_shown(name: str) -> bool:
    return name.endswith("/index.m3u8") or (name.startswith("thumbs/") and name.endswith(".jpg"))
