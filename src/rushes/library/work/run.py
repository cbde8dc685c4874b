"""Doing the work here and now: submit (or make what is damaged ready again), work until it is done, report."""

import queue
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace

from rushes.domain import errors
from rushes.domain.errors import Interrupted, ModelMissing, RegistryAway, RushesError, Terminated
from rushes.domain.job import FINAL, Job, JobCommand, JobState
from rushes.domain.keys import canonical, parse_task_id
from rushes.domain.task import TaskState
from rushes.domain.worker import DiskSpace
from rushes.estimates.estimate import forget_estimate
from rushes.estimates.time_left import LearntTimes
from rushes.home import Home, machine
from rushes.jobs.control import announce
from rushes.jobs.intake import IntakeResult, JobRequest, add, missing_models, wake
from rushes.jobs.maintenance.published_names import restore_names, still_wrong
from rushes.jobs.maintenance.repair import repair, rounds
from rushes.jobs.maintenance.reports import Damage, Selection, VerifyReport
from rushes.jobs.maintenance.verify import OnProgress, find_missing, verify
from rushes.jobs.maintenance.video_removal import deleted_jobs
from rushes.jobs.maintenance.work_file import WorkFile
from rushes.jobs.progress import JobsWatcher
from rushes.library.work.progress import EngineOutage, FilmsAdded, JobsProgress, RunProgress, RunReport, StopSignal
from rushes.library.work.workers import JobWorker
from rushes.telemetry import log
from rushes.worker.inputs import Input
from rushes.worker.publish import sweep

LOOK_SECONDS = 0.25
FIRST_SECONDS = 2.0  # for the first look, which shows what was done before; hundreds of films hold nothing up
RESUME_SECONDS = 7 * 86400.0  # a verification that was cut short is gone on with for so long
RESTORED = 20  # finished films whose published files are looked for: 14 requests each in a bucket; verify does all
REPAIRING = "repair"  # kind of the records of results that left the ledger before their tasks were ready again


def submit_and_run(
    home: Home, paths: Sequence[str], wanted: JobRequest, slots: int | None = None, *, signals: bool = False
) -> Iterator[RunProgress]:
    """Fetch models, submit the paths, and work on them.

    What needs models that cannot be fetched waits, and `RunReport.lacks` names them; all else is done.
    """
    try:
        if missing := missing_models(home, wanted):
            yield from home.models.pulling(missing)
    except (ModelMissing, RegistryAway) as e:
        log.warning("models cannot be fetched: %s", e)
    added = tuple(add(home, paths, wanted))
    for one in added:
        if one.job:
            forget_estimate(home, wake(home, one.job))
    yield FilmsAdded(added)
    yield from running(home, added, slots, signals=signals)


def running(
    home: Home, added: Sequence[IntakeResult], slots: int | None = None, *, signals: bool = False
) -> Iterator[RunProgress]:
    """Work on what was added until it is done. To close the iterator is to stop the work."""
    begun = time.monotonic()
    rows = [home.ledger.job(id) for id in dict.fromkeys(one.job.id for one in added if one.job)]
    before = {row.id: row.counts.done for row in rows if row.state is not JobState.COMPLETED}
    worker = JobWorker(home, tuple(before), slots)
    if before:
        yield from _work(worker, signals)
    else:
        sweep(home.ledger, home.blobs, home.job_names)  # names that a killed worker still owed
    restore_names(home, [row for row in rows if row.id not in before][:RESTORED])
    jobs = tuple(home.ledger.job(row.id) for row in rows)
    yield _report(worker, jobs, added, before, time.monotonic() - begun)


def run(home: Home, added: Sequence[IntakeResult], slots: int | None = None, *, signals: bool = False) -> RunReport:
    """Work on what was added until it is done."""
    return report_of(running(home, added, slots, signals=signals))


def report_of(progress: Iterator[RunProgress]) -> RunReport:
    """Let a run go on to its end; its last value."""
    *_, report = progress
    assert isinstance(report, RunReport)
    return report


def try_out(home: Home, added: Sequence[IntakeResult], *, signals: bool) -> None:
    """Do the jobs now or never: what is not finished is cancelled.

    Raises:
        Interrupted, Terminated: a signal came.
    """
    jobs = [wake(home, one.job).id for one in added if one.job]
    try:
        report = run(home, added, signals=signals)
    finally:
        for job in jobs:
            if home.ledger.job(job).state not in FINAL:
                home.ledger.control(job, JobCommand.CANCEL)
    if report.signal:
        raise stopped(report.signal)


def stopped(number: int) -> RushesError:
    """What a signal means for work that cannot be shown half done."""
    kind = Interrupted if number == signal.SIGINT else Terminated
    return kind("stopped before it was finished")


def _work(worker: JobWorker, signals: bool) -> Iterator[RunProgress]:
    """The worker runs in a thread, so that a slow reader does not hold it up."""
    news: queue.SimpleQueue[RunProgress | None] = queue.SimpleQueue()  # None: the worker has left
    looked = threading.Event()
    times = LearntTimes(worker.home, machine(), worker.slots or 0)
    watches = _Watches(JobsWatcher(worker.home.ledger, worker.jobs, times), times)

    def on_input(input: Input) -> None:
        if isinstance(input, DiskSpace) and input.enough != worker.shell.state.has_space:  # each lane reports it
            news.put(input)
        if outage := EngineOutage.of(input):
            news.put(outage)

    def work() -> None:
        looked.wait(FIRST_SECONDS)
        worker.shell.run()

    worker.shell.on_input = on_input
    listening = worker.listening(lambda number: news.put(StopSignal(number))) if signals else nullcontext()
    with listening, ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        future.add_done_callback(lambda _future: news.put(None))
        try:
            yield from _look(watches)
            looked.set()
            yield from _until_left(news, watches)
        finally:
            looked.set()
            worker.shell.request_stop()
            worker.shell.request_stop()
        future.result()
    yield from _look(watches)


@dataclass(frozen=True, slots=True)
class _Watches:
    watcher: JobsWatcher
    times: LearntTimes


def _until_left(news: "queue.SimpleQueue[RunProgress | None]", watches: _Watches) -> Iterator[RunProgress]:
    look_at = time.monotonic() + LOOK_SECONDS
    while True:
        try:
            progress = news.get(timeout=max(0.0, look_at - time.monotonic()))
        except queue.Empty:
            yield from _look(watches)
            look_at = time.monotonic() + LOOK_SECONDS
            continue
        if progress is None:
            return
        yield progress


def _look(watches: _Watches) -> list[JobsProgress]:
    with suppress(RushesError):  # a busy store: the next look will do
        seen = watches.watcher.look()
        remaining = watches.times.together([s.left for s in seen if s.job.state not in FINAL])
        return [JobsProgress(tuple(seen), remaining)]
    return []


def _report(
    worker: JobWorker, jobs: tuple[Job, ...], added: Sequence[IntakeResult], before: Mapping[str, int], seconds: float
) -> RunReport:
    refused, skipped = tuple(one for one in added if one.error), tuple(one for one in added if one.skipped)
    code, lacks = _code(worker.home, jobs, refused), worker.missing_models
    waits = (worker.due_in, lacks, skipped, code, worker.due_job)
    return RunReport(jobs, refused, seconds, before, worker.signal, *waits)


def _code(home: Home, jobs: Sequence[Job], refused: Sequence[IntakeResult]) -> int:
    """The exit code of the only failure; several have none of their own."""
    if len(jobs) + len(refused) != 1:
        return 1
    if refused and refused[0].error:
        return refused[0].error.exit_code
    dead = home.ledger.tasks(jobs[0].id, TaskState.DEAD, limit=1).rows
    kind = getattr(errors, dead[0].failure.kind, RushesError) if dead and dead[0].failure else RushesError
    return int(kind.exit_code)


def find_damages(home: Home, on_progress: OnProgress, chosen: Selection, *, restart: bool = False) -> VerifyReport:
    """Results that are damaged, that a repair left unfinished, and that are missing from the ledger.

    A look that was cut short goes on where it was, unless it shall `restart`.
    """
    question = canonical([home.owner, asdict(chosen)]).decode()
    file = WorkFile(home.folder / "verify.sqlite", question, 0.0 if restart else RESUME_SECONDS)
    try:
        found = verify(home.ledger, home.blobs, home.owner, on_progress, chosen=chosen, file=file, names=home.job_names)
    except BaseException:
        file.close()
        raise
    file.remove()
    if any(damage.names_only for damage in found.damages):
        found = _without_owed(home, found)
    begun = {r.id: Damage(**r.doc) for r in home.all_records(REPAIRING)}
    known = home.ledger.known(home.owner, begun)
    lost = {damage.key: damage for damage in find_missing(home.ledger, home.owner, home.specs, deleted_jobs(home))}
    lost |= {key: damage for key, damage in begun.items() if key not in known}
    return replace(found, damages=found.damages + tuple(lost.values()))


def repair_video(home: Home, jobs: Sequence[Job]) -> tuple[int, int]:
    """Make missing names of these jobs again; if none was missing, look for damage and leave its repair to workers.

    Answers how many names were made again, and how many jobs run again.
    """
    if restored := restore_names(home, jobs):
        return restored, 0
    damages = verify(home.ledger, home.blobs, home.owner, jobs=jobs, names=home.job_names).damages
    return 0, len(begin_repair(home, next(iter(rounds(home.ledger, damages)))))


def _without_owed(home: Home, found: VerifyReport) -> VerifyReport:
    """Names that were only owed while it was looked are paid now, and no damage."""
    sweep(home.ledger, home.blobs, home.job_names)
    damages = [d for d in found.damages if not d.names_only or still_wrong(home, d.job, d.key)]
    return replace(found, damages=tuple(damages))


def repairing(home: Home, damages: tuple[Damage, ...], *, signals: bool = False) -> Iterator[RunProgress]:
    """Make these again, and nothing else; after a round that does not end well the rest stays damaged."""
    progress: RunProgress | None = None
    for some in rounds(home.ledger, damages):
        for progress in running(home, begin_repair(home, some), signals=signals):
            if not isinstance(progress, RunReport):
                yield progress
        if isinstance(progress, RunReport) and progress.exit_code:
            break
    if progress:
        yield progress


def begin_repair(home: Home, damages: tuple[Damage, ...]) -> list[IntakeResult]:
    """Make the tasks of a round ready again; their jobs."""
    for damage in damages:
        home.records.put(REPAIRING, home.owner, damage.key, asdict(damage))
    tasks = repair(home.ledger, home.blobs, home.owner, damages, home.job_names)
    announce(home, tasks)
    for damage in damages:
        home.records.delete(REPAIRING, home.owner, damage.key)
    home.follower.check(home.owner)
    jobs = [home.ledger.job(j) for j in dict.fromkeys(parse_task_id(t)[0] for t in tasks)]
    return [IntakeResult(j.name, j) for j in jobs]
