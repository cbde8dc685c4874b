"""Garbage collection in small steps: intermediate results, expired clips, old history, leftovers of kills.

What has been seen is kept in a work file, so that memory stays flat and a gc that was killed goes on where it was.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, NotFound, Refused
from rushes.domain.event import EventType
from rushes.domain.job import Job, JobCommand
from rushes.domain.keys import parse_blob_key
from rushes.domain.result import Manifest
from rushes.jobs.maintenance.deletion import Announce, Deletion, RetentionRules, footage_of, sort_job, sort_results
from rushes.jobs.maintenance.reports import GcProgress, GcReport
from rushes.jobs.maintenance.work_file import WorkFile
from rushes.ledger.pages import all_tasks, known_in_pages
from rushes.ledger.port import Ledger
from rushes.plan.planner import results_of

OVER = "over"
PARTS = 256  # manifests and blobs lie in folders by the first two digits of their hashes
_READERS = 8  # a bucket answers several at once
_NAMED = 20  # digits of a hash: two that agree in them only keep a file that nobody needs
Forget = Callable[[Job], None]


OnProgress = Callable[[GcProgress], None]


def gc(
    ledger: Ledger,
    blobs: Blobs,
    owner: str,
    rules: RetentionRules,
    now: datetime | None = None,
    announce: Announce = lambda _tasks: None,
    file: WorkFile | None = None,
    on_progress: OnProgress = lambda _progress: None,
    forget: Forget | None = None,
) -> GcReport:
    """Set aside what the rules let go (row, manifest, then blobs), never what some other job wants."""
    clearing = Deletion(ledger, blobs, owner, rules, now or datetime.now(UTC), announce)
    round = GcRound(clearing, file or WorkFile(None), forget)
    while round.step():
        on_progress(round.progress)
    return round.report


def drop(
    ledger: Ledger,
    blobs: Blobs,
    owner: str,
    jobs: Collection[str],
    gone: Collection[str] = (),
    announce: Announce = lambda _tasks: None,
    footage: frozenset[str] = frozenset(),
) -> int:
    """Set aside what these jobs of one video made and no other wants, names too; `gone` want nothing.

    Repeatable; answers how many. Their blobs go with the next gc.
    """
    if not jobs:
        return 0
    footage = footage or footage_of(ledger.jobs(owner, ids=jobs).rows)  # theirs; a clip's job does not say it
    rules = RetentionRules({}, 0, 0, gone=frozenset((*jobs, *gone)), footage=footage)
    clearing = Deletion(ledger, blobs, owner, rules, datetime.now(UTC), announce)
    clearing.go_on(jobs)
    keys = {key for job in jobs for task in all_tasks(ledger, job) for key in results_of(task.spec).values()}
    return clearing.clear(keys - sort_results(ledger, owner, rules, clearing.now).wanted, "deleted", jobs)


class GcRound:
    """One gc, a small step at a time: each is kept whole in the work file before the next one begins."""

    def __init__(self, clearing: Deletion, file: WorkFile, forget: Forget | None = None) -> None:
        self._ledger, self._blobs, self._owner = clearing.ledger, clearing.blobs, clearing.owner
        self._file, self._now = file, clearing.now
        self._rules = replace(clearing.rules, gone=clearing.rules.gone | clearing.being_deleted())
        self._clearing = replace(clearing, wanted_now=self._wanted_now)
        self._forget = forget or (lambda job: forget_job(self._ledger, job))
        self._do: dict[str, Callable[[str], str]] = {
            "jobs": self._sort_jobs,
            "notes": self._finish_notes,
            "results": self._clear_results,
            "ended": self._forget_jobs,
            "manifests": self._read_manifests,
            "blobs": self._sweep_blobs,
        }

    def step(self) -> bool:
        """Do the next part of the work; False if there is none."""
        phase = self._phase
        if phase == OVER:
            return False
        with self._file.step():
            cursor = self._do[phase](self._file.get("cursor"))
            following = dict(itertools.pairwise((*self._do, OVER)))
            self._file.set(phase=phase if cursor else following[phase], cursor=cursor)
        return True

    @property
    def _phase(self) -> str:
        return self._file.get("phase") or "jobs"

    @property
    def progress(self) -> GcProgress:
        """How far it has come."""
        if self._phase in ("manifests", "blobs"):
            return GcProgress(self._phase, int(self._file.get("cursor") or "0", 16), PARTS)
        return GcProgress(self._phase, self._file.number("seen"))

    @property
    def report(self) -> GcReport:
        """What it has done so far."""
        return GcReport(*map(self._file.number, ("results", "files", "bytes", "trimmed", "forgotten")))

    # The phases: each does a part from a cursor on and answers the next cursor, "" at the end
    def _sort_jobs(self, cursor: str) -> str:
        """Sort what the jobs of a page speak of, and drop their oldest events."""
        if not cursor:  # who takes something up from now on is among the jobs that change
            self._file.set(changes=_end_of_changes(self._ledger))
        page = self._ledger.jobs(self._owner, oldest_first=True, cursor=cursor)
        for job in page.rows:
            self._sort(job)
            self._file.count(trimmed=self._trim(job), seen=1)
        return page.cursor

    def _finish_notes(self, _cursor: str) -> str:
        """Go on with what killed clearings began."""
        self._clearing.go_on()
        return ""

    def _clear_results(self, cursor: str) -> str:
        """Clear a page of what may go and nobody wants."""
        page = [*self._file.page("going", cursor)]
        free = set(page) - self._wanted_now(page)
        known = self._ledger.known(self._owner, free) if free else {}
        self._file.count(results=self._clearing.clear(known, "no longer needed"))
        return page[-1] if page else ""

    def _forget_jobs(self, cursor: str) -> str:
        """Forget a page of jobs that ended long ago, if nothing that they made is left."""
        page = [*self._file.page("ended", cursor)]
        for job in self._ledger.jobs(self._owner, ids=page).rows if page else ():
            keys = [key for task in all_tasks(self._ledger, job.id) for key in results_of(task.spec).values()]
            if not known_in_pages(self._ledger, self._owner, keys):
                with contextlib.suppress(Refused, NotFound):  # somebody takes it up, or has forgotten it
                    self._forget(job)
                    self._file.count(forgotten=1)
        return page[-1] if page else ""

    def _read_manifests(self, cursor: str) -> str:
        """Note the files that the manifests of a folder name; clear what a slot finished after its job was deleted."""
        if not cursor:  # what is finished from now on may not be among the named
            self._file.set(named_since=str(time.time()))
        part = cursor or "00"
        found = _manifests(self._blobs, self._blobs.keys(f"results/{self._owner}/{part}/"))
        left = {m.key for m in self._named(found) if m.provenance.run_id in self._rules.gone}
        unknown = left - known_in_pages(self._ledger, self._owner, left).keys()
        self._clearing.clear(unknown - self._wanted_now(unknown), "its job was deleted")
        if not (after := _part_after(part)):
            list(self._named(self._clearing.noted()))
        return after

    def _sweep_blobs(self, cursor: str) -> str:
        """Drop blobs of a folder that no manifest names: leftovers of killed attempts, and of what was set aside."""
        part = cursor or "00"
        keys = {parse_blob_key(key)[1]: key for key in self._blobs.keys(f"blobs/{self._owner}/{part}/")}
        named = self._file.find("named", [sha256[:_NAMED] for sha256 in keys])
        for sha256, key in keys.items():
            found = self._blobs.stat(self._owner, sha256) if sha256[:_NAMED] not in named else None
            if not found or found.age < (young := self._young_seconds()):  # asked for each: a machine may sleep
                continue
            if self._blobs.delete(key, older=young):
                self._file.count(files=1, bytes=found.size)
        return _part_after(part)

    # Parts of phases
    def _young_seconds(self) -> float:
        """A blob that is younger may belong to work in progress, now or when the manifests were read."""
        since = max(0.0, time.time() - float(self._file.get("named_since") or 0))
        return self._rules.young_seconds + since

    def _sort(self, job: Job) -> None:
        if job.id not in self._rules.gone:
            sorted_ = sort_job(job, all_tasks(self._ledger, job.id), self._rules, self._now)
            self._file.add("going", sorted_.going)
            self._file.add("wanted", sorted_.wanted)
        if self._rules.is_over(job, self._now):
            self._file.add("ended", [job.id])

    def _trim(self, job: Job) -> int:
        """Drop events that are too old; whether there were any. The last one always stays."""
        oldest = self._now - timedelta(days=self._rules.events_days)
        if not self._rules.events_days or datetime.fromisoformat(job.created_at) > oldest:
            return 0
        events = [e for e in self._ledger.events(job.id, limit=2) if e.type is not EventType.TRUNCATED]
        if not events or events[0].number == job.last_event or datetime.fromisoformat(events[0].at) > oldest:
            return 0
        self._ledger.control(job.id, JobCommand.TRIM, self._rules.events_days * 86400)
        return 1

    def _wanted_now(self, keys: Collection[str]) -> frozenset[str]:
        """Those that a job wants, also one that has taken them up since the jobs were sorted."""
        changed, cursor = self._ledger.changed(self._file.get("changes"))
        while changed:
            for job in self._ledger.jobs(self._owner, ids=changed).rows:
                self._sort(job)
            self._file.set(changes=cursor)
            changed, cursor = self._ledger.changed(cursor)
        return frozenset(self._file.find("wanted", keys))

    def _named(self, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
        for manifest in manifests:
            self._file.add("named", [artifact.sha256[:_NAMED] for artifact in manifest.artifacts])
            yield manifest


def forget_job(ledger: Ledger, job: Job) -> None:
    """Drop a job that is over from the ledger."""
    ledger.control(job.id, JobCommand.FORGET)


def _end_of_changes(ledger: Ledger) -> str:
    cursor, more = "", True
    while more:
        before = cursor
        _, cursor = ledger.changed(before)
        more = cursor != before
    return cursor


def _part_after(part: str) -> str:
    number = int(part, 16) + 1
    return f"{number:02x}" if number < PARTS else ""


def _manifests(blobs: Blobs, keys: Iterable[str]) -> Iterator[Manifest]:
    """Those that are sound; of a bucket several are read at once."""
    with ThreadPoolExecutor(_READERS if blobs.folder is None else 1) as readers:
        for manifest in readers.map(lambda key: _manifest(blobs, key), keys):
            if manifest:
                yield manifest


def _manifest(blobs: Blobs, key: str) -> Manifest | None:
    with contextlib.suppress(DamagedBlob):
        data = read_document(blobs, key)
        return parse_manifest(data, key) if data else None
    return None
