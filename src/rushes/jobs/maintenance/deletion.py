"""Which results may be deleted, and deleting them: row, manifest, published names; those in use come back.

A note of the manifests is written before they go, so that a clearing which was killed can be gone on with.
"""

import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest, written
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.keys import canonical, manifest_key, manifests_of_subject
from rushes.domain.result import Manifest
from rushes.domain.stage import StageSpec
from rushes.domain.task import Task, TaskState
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import inputs_of, results_of
from rushes.telemetry import log

Announce = Callable[[Sequence[str]], None]
_PAGE = 500  # results in one note


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """What may go, and when."""

    specs: Mapping[str, StageSpec]
    keep_days: int
    clip_days: int
    young_seconds: float = 86400.0  # an unnamed blob that is younger may belong to work in progress
    events_days: int = 0  # 0: events stay
    jobs_days: int = 0  # 0: jobs stay
    gone: frozenset[str] = frozenset()  # jobs that were deleted: they want nothing
    footage: frozenset[str] = frozenset()  # sha256s, where all that goes was made of these; none: look at every job

    def is_over(self, job: Job, now: datetime) -> bool:
        """Whether a job ended so long ago that it may be forgotten, if nothing that it made is left."""
        return bool(self.jobs_days) and job.state in FINAL and _age_in_days(job, now) >= self.jobs_days


@dataclass(frozen=True, slots=True)
class SortedResults:
    """Results by what becomes of them: no job wants those that go any more."""

    going: frozenset[str]
    wanted: frozenset[str]


def sort_results(ledger: Ledger, owner: str, rules: RetentionRules, now: datetime) -> SortedResults:
    """Every result that a job of the owner speaks of."""
    going: set[str] = set()
    wanted: set[str] = set()
    for job in all_jobs(ledger, owner):
        if job.id in rules.gone or (rules.footage and not footage_of([job]) <= rules.footage):
            continue  # results are never shared by other footage; a job that has not read its own is looked at
        of_job = sort_job(job, all_tasks(ledger, job.id), rules, now)
        going |= of_job.going
        wanted |= of_job.wanted
    return SortedResults(frozenset(going - wanted), frozenset(wanted))


def sort_job(job: Job, tasks: Sequence[Task], rules: RetentionRules, now: datetime) -> SortedResults:
    """Every result that one job speaks of: what it lets go, and what it wants."""
    going = frozenset(_passing(job, tasks, rules, now))
    if job.state is not JobState.COMPLETED and rules.is_over(job, now):
        return SortedResults(going, frozenset())
    return SortedResults(going, frozenset(key for task in tasks for key in _wants(job, task)) - going)


def footage_of(jobs: Collection[Job]) -> frozenset[str]:
    """What jobs are about, as far as they have read it."""
    read = (json.loads(job.facts).get("sha256") for job in jobs if job.facts)
    return frozenset(sha256 for sha256 in read if sha256)


def _wants(job: Job, task: Task) -> Iterator[str]:
    yield from results_of(task.spec).values()
    if job.state is not JobState.COMPLETED:
        yield from inputs_of(task.spec)


def _passing(job: Job, tasks: Sequence[Task], rules: RetentionRules, now: datetime) -> Iterator[str]:
    """What a completed job lets go by age, and all of one that failed or was cancelled long ago."""
    days = _age_in_days(job, now)
    for task in tasks:
        spec = rules.specs.get(task.stage)
        may_go = (*spec.intermediate,) if spec and days >= rules.keep_days else ()
        may_go += (*spec.expiring,) if spec and days >= rules.clip_days else ()
        for output, key in results_of(task.spec).items():
            if output in may_go if job.state is JobState.COMPLETED else rules.is_over(job, now):
                yield key


def _age_in_days(job: Job, now: datetime) -> int:
    """Whole days since it ended."""
    return (now - datetime.fromisoformat(job.finished_at)).days if job.finished_at else 0


@dataclass(frozen=True, slots=True)
class DeletionNote:
    """Results that are being cleared: their manifests as they were ("" if there was none), and whose they are not."""

    manifests: dict[str, str]
    why: str
    gone: tuple[str, ...] = ()  # jobs that are being deleted: they want nothing


@dataclass(frozen=True, slots=True)
class Deletion:
    """Takes results out of the way of an owner's jobs.

    First the manifest goes, then comes the look at who wants it: whoever still found it is seen by that look.
    """

    ledger: Ledger
    blobs: Blobs
    owner: str
    rules: RetentionRules
    now: datetime
    announce: Announce = lambda _tasks: None  # of tasks that are made again
    wanted_now: Callable[[Collection[str]], frozenset[str]] | None = None  # those of some keys; None: look at all jobs

    def clear(self, keys: Iterable[str], why: str, gone: Iterable[str] = ()) -> int:
        """Set results aside, but for what jobs take up meanwhile; answers how many went. Repeatable."""
        pages = _pages(sorted(keys), _PAGE)
        names = [name for page in pages if (name := self._write(page, why, tuple(sorted(gone))))]
        return self._settle(names)

    def go_on(self, gone: Collection[str] = ()) -> None:
        """Finish what killed clearings began: all, or those that delete one of these jobs."""
        notes = self._notes(self.blobs.keys(_notes_of(self.owner)))
        mine = {name: note.gone for name, note in notes if not gone or not set(note.gone).isdisjoint(gone)}
        if mine:
            self._settle([*mine], self._wanted([*mine], {job for some in mine.values() for job in some}))

    def being_deleted(self) -> frozenset[str]:
        """Jobs whose deletion was killed: they want nothing."""
        return frozenset(job for _, note in self._notes(self.blobs.keys(_notes_of(self.owner))) for job in note.gone)

    def noted(self) -> Iterator[Manifest]:
        """What may yet be brought back."""
        for _, note in self._notes(self.blobs.keys(_notes_of(self.owner))):
            yield from _parsed(note.manifests.items())

    def _write(self, keys: Sequence[str], why: str, gone: tuple[str, ...]) -> str:
        """The name of a note of those that are there, "" if none is."""
        known = self.ledger.known(self.owner, keys)
        found = {key: written(self.blobs, manifest_key(self.owner, key)) or b"" for key in keys}
        there = {key: data.decode("latin-1") for key, data in found.items() if data or key in known}
        name = f"{_notes_of(self.owner)}{secrets.token_hex(8)}.json"
        return name if there and self.blobs.create(name, canonical(asdict(DeletionNote(there, why, gone)))) else ""

    def _notes(self, names: Iterable[str]) -> Iterator[tuple[str, DeletionNote]]:
        """Those that can be read: what a damaged one named is found by verify, if a job wants it."""
        for name in names:
            try:
                if (data := read_document(self.blobs, name)) is None:
                    continue  # settled by somebody else meanwhile
                doc = json.loads(data)
                yield name, DeletionNote(dict(doc["manifests"]), str(doc["why"]), tuple(doc["gone"]))
            except (DamagedBlob, ValueError, KeyError, TypeError):
                log.warning("skipped: the note %s is damaged", name)

    def _wanted(self, names: Sequence[str], gone: Collection[str]) -> frozenset[str]:
        """What jobs want of all that these notes name."""
        if self.wanted_now:
            return self.wanted_now({key for _, note in self._notes(names) for key in note.manifests})
        rules = replace(self.rules, gone=self.rules.gone.union(gone))
        return sort_results(self.ledger, self.owner, rules, self.now).wanted

    def _settle(self, names: Sequence[str], spared: Collection[str] = ()) -> int:
        taken = {key for _, note in self._notes(names) for key in self._take_out(note, spared)}
        gone = {job for _, note in self._notes(names) for job in note.gone}.union(self.rules.gone)
        wanted = self._wanted(names, gone) if names else frozenset()
        for name, note in self._notes(names):
            back = {key: data for key, data in note.manifests.items() if key in wanted}
            self._bring_back(back, gone)
            self._unpublish([(key, data) for key, data in note.manifests.items() if key not in back])
            self.blobs.delete(name)
        return len(taken - wanted)

    def _take_out(self, note: DeletionNote, spared: Collection[str]) -> Iterable[str]:
        """Rows, then manifests, but for what was made again or adopted since the note; those that had a row."""
        found = {key: (manifest_key(self.owner, key), data.encode("latin-1")) for key, data in note.manifests.items()}
        now = {key: written(self.blobs, name) for key, (name, _) in found.items() if key not in spared}
        mine = [key for key, data in now.items() if data in (None, found[key][1])]
        known = self.ledger.known(self.owner, mine)
        for page in _pages(mine, self.ledger.batch):
            self.ledger.set_aside(self.owner, page, note.why)
        for name, data in (found[key] for key in mine if now[key] is not None):
            self.blobs.delete(name, was=data or None)  # what cannot be read goes as it is
        return known

    def _bring_back(self, manifests: dict[str, str], gone: Collection[str]) -> None:
        """A job took these up: their manifests are there again, and who was done without a row adopts them again."""
        for key, data in manifests.items():
            if data:
                self.blobs.create(manifest_key(self.owner, key), data.encode("latin-1"))
        lost = manifests.keys() - self.ledger.known(self.owner, manifests).keys()
        for job in all_jobs(self.ledger, self.owner) if lost else ():
            done = all_tasks(self.ledger, job.id, TaskState.DONE) if job.id not in gone else ()
            if tasks := [task.id for task in done if lost & set(results_of(task.spec).values())]:
                self.announce(self.ledger.revive(job.id, tasks, again=True))

    def _unpublish(self, manifests: Sequence[tuple[str, str]]) -> None:
        """Take their names away; a result that stays and shares one gets it back."""
        names = {a.publish for manifest in _parsed(manifests) for a in manifest.artifacts if a.publish}
        for name in sorted(names):
            self.blobs.delete(name)
        if names:
            self._publish_others(names, {manifests_of_subject(self.owner, key) for key, _ in manifests})

    def _publish_others(self, names: Collection[str], places: Collection[str]) -> None:
        """The newest job's result has a name; one that got it by itself meanwhile keeps it."""
        free = {name for name in names if self.blobs.read(name, 0, 0) is None}
        found = ((key, written(self.blobs, key)) for place in sorted(places) for key in self.blobs.keys(place))
        texts = ((key, data.decode("latin-1")) for key, data in found if data)
        sharing = [m for m in _parsed(texts) if any(a.publish in free for a in m.artifacts)]
        known = self.ledger.known(self.owner, [m.key for m in sharing])
        jobs = self.ledger.jobs(self.owner, ids={m.provenance.run_id for m in sharing}).rows if sharing else ()
        age = {job.id: job.created_at for job in jobs}
        for manifest in sorted(sharing, key=lambda m: age.get(m.provenance.run_id, "")):
            for artifact in manifest.artifacts if manifest.key in known else ():
                if artifact.publish in free:
                    self._publish(artifact.publish, artifact.sha256)

    def _publish(self, name: str, sha256: str) -> None:
        try:
            self.blobs.publish(name, self.owner, sha256)
        except DamagedBlob as e:
            log.warning("publishing %s: %s", name, e)  # verify finds it, and its repair owes the name again


def _notes_of(owner: str) -> str:
    return f"clearing/{owner}/"


def _pages(keys: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (keys[first : first + size] for first in range(0, len(keys), size))


def _parsed(manifests: Iterable[tuple[str, str]]) -> Iterator[Manifest]:
    """Those that are sound: a damaged one names nothing."""
    for key, data in manifests:
        try:
            yield parse_manifest(data.encode("latin-1"), key)
        except DamagedBlob:
            continue
