"""Verify: checks that the files of done tasks exist and match their hashes, and that needed results have rows."""

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.blobs.published import Names, own_names, wrong_names
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import Job, JobState
from rushes.domain.keys import manifest_key
from rushes.domain.result import Manifest, Result
from rushes.domain.stage import StageSpec
from rushes.domain.task import Task, TaskState
from rushes.jobs.maintenance.reports import EVERYTHING, Damage, Selection, VerifyProgress, VerifyReport
from rushes.jobs.maintenance.work_file import WorkFile
from rushes.ledger.pages import all_jobs, all_tasks, known_in_pages
from rushes.ledger.port import Ledger
from rushes.plan.planner import inputs_of, results_of

DAMAGED = "damaged: "  # how the reason begins why a result was, or should be, set aside
_COMING = (TaskState.WAITING, TaskState.READY, TaskState.LEASED)


OnProgress = Callable[[VerifyProgress], None]


def verify(
    ledger: Ledger,
    blobs: Blobs,
    owner: str,
    on_progress: OnProgress = lambda _progress: None,
    jobs: Collection[Job] | None = None,
    chosen: Selection = EVERYTHING,
    file: WorkFile | None = None,
    names: Names = own_names,
) -> VerifyReport:
    """Read every file of the chosen results of these jobs (default: all), each once, and look at published names.

    A damage is told of the newest job that can make it again: rather not a paused one, never a cancelled one
    if there is another.
    """
    look = _Verification(ledger, blobs, owner, file or WorkFile(None), chosen, names)
    before = look.file.number("results")
    if jobs is None:
        look.over_all(on_progress)
    else:
        look.over_some(jobs, 0, len(jobs), on_progress)
    return look.report(before)


@dataclass(frozen=True, slots=True)
class _Verification:
    """One look; what it has seen is in its work file, kept with every job."""

    ledger: Ledger
    blobs: Blobs
    owner: str
    file: WorkFile
    chosen: Selection
    names: Names

    def over_all(self, on_progress: OnProgress) -> None:
        """Every job, from the page on in which an earlier look was cut short."""
        if not self.file.get("total"):
            total = sum(1 for _ in all_jobs(self.ledger, self.owner))
            self.file.set(total=str(total), seed=secrets.token_hex(8))
        more = True
        while more:
            page = self.ledger.jobs(self.owner, oldest_first=True, cursor=self.file.get("cursor"))
            self.over_some(page.rows, self.file.number("jobs"), self.file.number("total"), on_progress)
            self.file.count(jobs=len(page.rows))
            self.file.set(cursor=page.cursor)
            more = bool(page.cursor)

    def over_some(self, jobs: Iterable[Job], before: int, total: int, on_progress: OnProgress) -> None:
        """These jobs, of so many, after so many."""
        for number, job in enumerate(jobs, before + 1):
            with self.file.step():
                self._job(job, partial(self._report, on_progress, number, total, job.name))

    def _report(self, on_progress: OnProgress, jobs: int, total: int, name: str) -> None:
        on_progress(VerifyProgress(self.file.number("results"), jobs, max(jobs, total), name))

    def report(self, resumed: int) -> VerifyReport:
        """What was found by all looks of this file."""
        damages: list[Damage] = []
        while page := self.file.page("damaged", damages[-1].key if damages else ""):
            damages += [Damage(**json.loads(value)["damage"]) for value in page.values()]
        results, files, size = map(self.file.number, ("results", "files", "bytes"))
        return VerifyReport(results, files, size, tuple(damages), resumed)

    def _job(self, job: Job, tell: Callable[[], None]) -> None:
        fit = 0 if job.state is JobState.CANCELLED else 1 if job.paused else 2
        tasks = all_tasks(self.ledger, job.id, TaskState.DONE)
        makers = {key: (task.id, output) for task in tasks for output, key in results_of(task.spec).items()}
        mine = [key for key in makers if self.chosen.takes(key, self.file.get("seed"))]
        seen, known = self.file.find("seen", mine), known_in_pages(self.ledger, self.owner, mine)
        for key in known:
            if key not in seen:
                tell()
                self._read(Damage(job.id, makers[key][0], key, makers[key][1], ""), known[key], fit)
        self._retell(job.id, makers, [key for key in known if key in seen], fit)

    def _read(self, sound: Damage, row: Result, fit: int) -> None:
        what, names_only = self._look(sound.job, row)
        self.file.add("seen", [row.key])
        self.file.count(results=1)
        if what:
            self.ledger.set_aside(self.owner, [row.key], f"{DAMAGED}{what}", note_only=True)
            self._tell(replace(sound, what=what, names_only=names_only), fit)

    def _retell(self, job: str, makers: Mapping[str, tuple[str, str]], keys: Collection[str], fit: int) -> None:
        """A damage of before is told of this job, if it can make it again at least as well."""
        for key, text in self.file.find("damaged", keys).items():
            told = json.loads(text)
            if fit >= told["fit"]:
                task, output = makers[key]
                self._tell(replace(Damage(**told["damage"]), job=job, task=task, output=output), fit)

    def _tell(self, damage: Damage, fit: int) -> None:
        self.file.add("damaged", [damage.key], json.dumps({"damage": asdict(damage), "fit": fit}))

    def _look(self, job: str, row: Result) -> tuple[str, bool]:
        """What is wrong with a result ("": nothing), and if only with its names; its sound files are counted."""
        try:
            data = read_document(self.blobs, manifest_key(self.owner, row.key))
            if data is None:
                return "the manifest is missing", False
            if hashlib.sha256(data).hexdigest() != row.manifest_sha256:
                return "the manifest is not the one that was committed", False
            manifest = parse_manifest(data, row.key)
        except DamagedBlob:
            return "the manifest is damaged", False
        if bad := self._damaged_files(manifest):
            names = [a.name for a in manifest.artifacts if a.sha256 in bad]
            return f"missing or damaged: {', '.join(names)}", False
        wrong = wrong_names(self.blobs, self.owner, self.names(job, manifest))
        return (f"published file missing or changed: {', '.join(wrong)}", True) if wrong else ("", False)

    def _damaged_files(self, manifest: Manifest) -> set[str]:
        sizes = {a.sha256: a.size for a in manifest.artifacts}
        new = sizes.keys() - self.file.find("files", sizes).keys()
        bad = {sha256 for sha256 in new if not self.blobs.verify(self.owner, sha256)}
        self.file.add("files", new - bad)
        self.file.count(files=len(new - bad), bytes=sum(sizes[sha256] for sha256 in new - bad))
        return bad


def find_missing(
    ledger: Ledger, owner: str, specs: Mapping[str, StageSpec], gone: Collection[str]
) -> tuple[Damage, ...]:
    """Results without a row that a job must have and nobody is making, each told of the newest such job.

    What may go some day is missing only if work that is not done yet reads it; jobs that were deleted miss nothing.
    """
    lost: dict[str, Damage] = {}
    for job in _not_gone(ledger, owner, gone):
        must = {damage.key: damage for damage in _held(job, all_tasks(ledger, job.id), specs)}
        lost |= {key: must[key] for key in must.keys() - known_in_pages(ledger, owner, must).keys()}
    coming = _coming(ledger, owner, gone) if lost else frozenset()
    return tuple(lost[key] for key in sorted(lost.keys() - coming))


def _not_gone(ledger: Ledger, owner: str, gone: Collection[str]) -> Iterator[Job]:
    return (job for job in all_jobs(ledger, owner) if job.id not in gone and job.state is not JobState.CANCELLED)


def _coming(ledger: Ledger, owner: str, gone: Collection[str]) -> frozenset[str]:
    """What unfinished jobs are making."""
    jobs = (job for job in _not_gone(ledger, owner, gone) if job.state is not JobState.COMPLETED)
    tasks = (task for job in jobs for task in all_tasks(ledger, job.id) if task.state in _COMING)
    return frozenset(key for task in tasks for key in results_of(task.spec).values())


def _held(job: Job, tasks: tuple[Task, ...], specs: Mapping[str, StageSpec]) -> Iterator[Damage]:
    read = {key for task in tasks if task.state is not TaskState.DONE for key in inputs_of(task.spec)}
    for task in tasks:
        spec = specs.get(task.stage)
        may_go = (*spec.intermediate, *spec.expiring) if spec else ()
        for output, key in results_of(task.spec).items() if task.state is TaskState.DONE else ():
            if key in read or output not in may_go:
                yield Damage(job.id, task.id, key, output, "it is missing")
