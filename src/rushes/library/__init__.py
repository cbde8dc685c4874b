"""The small typed Python API: Library(home).run(path), .search(...), .clip(...).

The command line is a thin layer over it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from rushes.annotations import sidecars
from rushes.annotations.people import Seen, everybody
from rushes.blobs.local_disk import remove_unfinished
from rushes.domain.errors import ModelMissing, Refused, RegistryAway
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobCommand, JobState
from rushes.domain.keys import parse_task_id
from rushes.domain.observation import Observation
from rushes.domain.task import Task
from rushes.engines.models.store import ModelStore
from rushes.estimates.estimate import Estimate, estimate, expected, learn, resume
from rushes.home import Home, machine
from rushes.index.port import Hit, SearchResult, Summary, Video
from rushes.index.search import SemanticIndex, next_hit, search
from rushes.jobs.dead_letters import Choice, DeadLetters, FailureGroup, all_of, chosen
from rushes.jobs.follow import follow
from rushes.jobs.intake import TRIAL, IntakeResult, JobRequest, add, missing_models, wake
from rushes.jobs.maintenance.backup import BackedUp, backup, restore
from rushes.jobs.maintenance.gc import GcReport, gc
from rushes.jobs.maintenance.lock import alone
from rushes.jobs.maintenance.verify import Damage, Verified
from rushes.jobs.maintenance.video_removal import RemovalReport, cut_short, finish, finish_all, remove, rules
from rushes.jobs.models import explained
from rushes.jobs.originals import at_home
from rushes.jobs.why import WaitReason, why
from rushes.ledger.pages import all_tasks, every
from rushes.ledger.port import Page
from rushes.library.beside import Beside, write_all, write_sidecar, write_subtitles
from rushes.library.clips import Clip, cut
from rushes.library.compare import Compared, compare
from rushes.library.doctor import Check, doctor
from rushes.library.export import export, shots_of
from rushes.library.hits import export_hits
from rushes.library.idempotency import forget_requests
from rushes.library.mend import damaged, mend
from rushes.library.names import means, the_one
from rushes.library.run import Looker, OnRoom, OnSignal, RunReport, Work, run
from rushes.library.watch import wait, watch
from rushes.settings import NO_OPTIONS, Options, find_home
from rushes.telemetry import log
from rushes.uploads.expected import Promised, promise
from rushes.uploads.service import Uploads
from rushes.wiring import open_home
from rushes.wiring.kept import folder
from rushes.worker.scratch import clear

OnPull = Callable[[str, int, int], None]  # model id, bytes done, bytes in all


__all__ = ["Clip", "Estimate", "IntakeResult", "JobRequest", "Library", "RunReport"]


class Library:
    """A home with its videos: take in, work, look, cut, steer and care."""

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        create: bool = True,
        take_over: bool = False,
        options: Options = NO_OPTIONS,
    ) -> None:
        """Open the home named, else the nearest `.rushes/` upwards, else the user's library."""
        folder = find_home(Path.cwd(), home)
        self.home: Home = open_home(folder, create=create, take_over=take_over, options=options)
        self._owner = self.home.settings.owner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the home."""
        self.home.close()

    # Taking in and working
    def add(self, paths: Iterable[str | Path], wanted: JobRequest | None = None) -> list[IntakeResult]:
        """Submit files and folders; the same file with the same wish is the same job."""
        return list(add(self.home, map(str, paths), wanted or JobRequest()))

    def run(
        self,
        paths: Iterable[str | Path],
        wanted: JobRequest | None = None,
        *,
        slots: int | None = None,
        look: Looker | None = None,
        signals: bool = False,
        beside: bool | None = None,
        on_pull: OnPull | None = None,
        on_added: Callable[[Sequence[IntakeResult]], None] = lambda _added: None,
        on_signal: OnSignal = lambda _number: None,
        on_room: OnRoom = lambda _room: None,
    ) -> RunReport:
        """Do the work here and now; killed anywhere, the same call goes on.

        What needs weights that cannot be fetched waits, and `RunReport.lacks` names them; all else is done.
        """
        try:
            self.pull(missing_models(self.home, wanted or JobRequest()), on_pull)
        except (ModelMissing, RegistryAway) as e:
            log.warning("weights cannot be fetched: %s", e)
        added = self.add(paths, wanted)
        for one in added:
            if one.job:
                resume(self.home, wake(self.home, one.job))
        on_added(added)
        learn(self.home, added, wanted or JobRequest(), machine(), signals=signals)
        ran = run(self.home, added, slots, look, signals=signals, on_signal=on_signal, on_room=on_room)
        if self.home.settings.beside if beside is None else beside:
            self.write_beside(ran.jobs)
        return ran

    def promise(self, name: str, wanted: JobRequest | None = None) -> Promised:
        """A job for a file that will be put into the home's bucket; `rushes watch` tells when it has arrived."""
        return promise(self.home, name, wanted or JobRequest())

    def watch(
        self,
        places: Iterable[str | Path] = (),
        wanted: JobRequest | None = None,
        *,
        once: bool = False,
        pause: Callable[[float], bool] = wait,
    ) -> Iterator[IntakeResult]:
        """Take in what is new at these places, look after look, until `pause` says no (or once, all that is there)."""
        return watch(self.home, [*map(str, places)], wanted or JobRequest(), once=once, pause=pause)

    def work(self, *, slots: int | None = None, lanes: Sequence[str] = (), until_idle: bool = False) -> int:
        """Be a worker of this home until told to stop; answers the exit code."""
        return Work(self.home, (), slots, lanes=tuple(lanes), until_idle=until_idle).serve()

    def estimate(
        self, paths: Iterable[str | Path], wanted: JobRequest | None = None, *, signals: bool = False
    ) -> list[Estimate]:
        """How long the work will take on this machine, as a range."""
        return estimate(self.home, [*map(str, paths)], wanted or JobRequest(), machine(), signals=signals)

    def expected(self, job: Job) -> tuple[float, float] | None:
        """The estimate of a planned job in seconds (p50, p90); None until something was learnt on this machine."""
        return expected(self.home, job, machine())

    def pull(self, models: Sequence[str], on_pull: OnPull | None = None) -> None:
        """Fetch weights that are not on this machine yet."""
        if models:
            self.models.pull(models, on_pull or (lambda _id, _done, _all: None))

    @property
    def models(self) -> ModelStore:
        """The weights on this machine."""
        return self.home.models

    # Looking
    def videos(self, cursor: str = "", limit: int = 100) -> tuple[tuple[Video, ...], str]:
        """Videos, newest first, and the next cursor."""
        self._catch_up()
        return self.home.index.videos(self._owner, cursor, limit)

    def video(self, name: str) -> Video:
        """One video by its id, the beginning of it, its file name (with or without ending) or one of its paths.

        Raises:
            NotFound: none, or more than one.
        """
        self._catch_up()
        found = [v for v in self._all_videos() if means(v, name)]
        exact = [v for v in found if name in (v.id, v.name, *v.paths)]
        return at_home(self.home, the_one(name, exact or found, "video"))

    def search(
        self, query: str, limit: int = 20, cursor: str = "", video: str = "", order: str = "best"
    ) -> SearchResult:
        """Time-coded hits over everything that is known by now, best first or by `time`; no text is an error."""
        self._catch_up()
        return search(self.home.index, self._owner, query, limit, cursor, video, order, self._semantic(query))

    def export_hits(self, query: str, kind: str, video: str = "", order: str = "time") -> bytes:
        """All hits of a search as csv, jsonl or edl (cut after cut, whole frames)."""
        return export_hits(self.home, query, kind, lambda cursor: self.search(query, 500, cursor, video, order))

    def next_hit(self, query: str, video: str, at_us: int, *, back: bool = False) -> Hit | None:
        """The hit that follows a moment of a video across the library in shooting order, or the one before it."""
        self._catch_up()
        semantic = self._semantic(query)
        return next_hit(self.home.index, self._owner, query, video, at_us, back=back, semantic=semantic)

    def summary(self) -> Summary:
        """What there is to find."""
        self._catch_up()
        return self.home.index.summary(self._owner)

    def lines(self, video: str) -> tuple[Observation, ...]:
        """What is said, in order; while the job runs, what is known by now."""
        return self.home.index.lines(self._owner, self.video(video).id)

    def shots(self, video: str) -> list[tuple[int, int]]:
        """Start and end of each shot in microseconds."""
        return [(s.start_us, s.end_us) for s in shots_of(self.home, self.video(video))]

    def people(self, *, hidden: bool = False) -> list[Seen]:
        """Everybody whose face is known, named first."""
        return everybody(self.home, hidden=hidden)

    def compare(self, video: str, left: str, right: str, kind: str = "speech") -> Compared:
        """What two runs say of a kind, side by side."""
        return compare(self.home, self.video(video), left, right, kind)

    def clip(
        self,
        video: str,
        start_us: int,
        end_us: int,
        padding_ms: int = 2000,
        out: str | Path | None = None,
        *,
        proxy: bool = False,
        subtitles: str = "",
        signals: bool = False,
    ) -> Clip:
        """Cut [start - padding, end + padding] to the exact frame; `subtitles` as a "track", "burnt", or none."""
        found = self.video(video)
        target = Path(out) if out else None
        return cut(
            self.home,
            found,
            start_us,
            end_us,
            padding_ms,
            target,
            proxy=proxy,
            subtitles=subtitles,
            signals=signals,
        )

    def export(self, video: str, kind: str, out: str | Path | None = None) -> bytes:
        """A video's results in a form other tools read: srt, vtt, txt, json, csv, jsonl, chapters, edl, otio."""
        return export(self.home, self.video(video), kind, Path(out) if out else None)

    def write_beside(self, jobs: Iterable[Job]) -> list[Beside]:
        """Write subtitles and sidecars of finished jobs beside their films; what is not ours is kept, and told."""
        return [f for job in jobs for write in (write_subtitles, write_sidecar) for f in write(self.home, job)]

    # Jobs
    def job(self, name: str) -> Job:
        """One job by its id or the beginning of it.

        Raises:
            NotFound: none, or more than one.
        """
        return the_one(name, [j for j in self._all_jobs() if j.id.startswith(name) or j.id == f"job_{name}"], "job")

    def jobs(self, state: JobState | None = None, cursor: str = "", limit: int = 100) -> Page[Job]:
        """Jobs, newest first, without the trials that estimates make."""
        page = self.home.ledger.jobs(self._owner, state, cursor=cursor, limit=limit)
        return Page(tuple(job for job in page.rows if job.recipe != TRIAL), page.cursor)

    def tasks(self, job: str) -> tuple[Task, ...]:
        """All tasks of a job in plan order."""
        return all_tasks(self.home.ledger, self.job(job).id)

    def events(self, job: str, after: int = 0, pause: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """A job's history after a number; with `pause`, live until the job is final."""
        return follow(self.home.ledger, self.job(job).id, after, pause)

    def log(self, task: str) -> list[str]:
        """The log lines of a task's last attempt."""
        events = self.home.ledger.events(parse_task_id(task)[0], types={EventType.LOG}, task=task, limit=1000)
        return [str(e.data.get("line", "")) for e in events]

    def why(self, job: str) -> tuple[WaitReason, ...]:
        """Why each task of a job that is not running does not run."""
        row = self.job(job)
        return explained(self.home, row, why(self.home.ledger, row))

    def pause(self, job: str, *, now: bool = False) -> Job:
        """Start nothing new of it; running chunks finish and commit, or with `now` are given back."""
        return self._control(job, JobCommand.PAUSE_NOW if now else JobCommand.PAUSE)

    def resume(self, job: str) -> Job:
        """Go on after a pause."""
        return self._control(job, JobCommand.RESUME)

    def cancel(self, job: str) -> Job:
        """Nothing of it commits from now on; what is done stays."""
        return self._control(job, JobCommand.CANCEL)

    def retry(self, job: str, stage: str = "") -> tuple[str, ...]:
        """Try dead tasks again; a cancelled job goes on."""
        return self.home.ledger.revive(self.job(job).id, stage=stage)

    @property
    def letters(self) -> DeadLetters:
        """Dead letters, a page at a time."""
        return DeadLetters(self.home.ledger, self.home.records, self._owner)

    def failed(self, kind: str = "") -> tuple[FailureGroup, ...]:
        """Dead letters by class."""
        return chosen(tuple(g for g in self.letters.groups() if kind in ("", g.kind)), kind)

    def retry_failed(self, kind: str = "") -> tuple[str, ...]:
        """Try dead letters of a class (or all) again."""
        return chosen(all_of(lambda cursor: self.letters.retry(Choice.of(kind), cursor)), kind)

    def discard_failed(self, kind: str = "") -> int:
        """Put dead letters of a class (or all) away."""
        return len(chosen(all_of(lambda cursor: self.letters.discard(Choice.of(kind), cursor)), kind))

    # Care
    def remove(self, video: str, *, originals: bool = False) -> RemovalReport:
        """Delete a video with all that was made of it; the original stays, unless it was uploaded and `originals`."""
        if left := cut_short(self.home, video):
            return finish(self.home, left)
        return remove(self.home, self.video(video), originals=originals)

    def verify(self, on_progress: Callable[[int, str], None] = lambda _n, _name: None) -> Verified:
        """Read every file of every result and compare it with its hash."""
        return damaged(self.home, on_progress)

    def repair(
        self,
        damages: tuple[Damage, ...],
        look: Looker | None = None,
        *,
        signals: bool = False,
        on_room: OnRoom = lambda _room: None,
    ) -> RunReport:
        """Make what is damaged again, and nothing else."""
        return mend(self.home, damages, look, signals=signals, on_room=on_room)

    def gc(self) -> GcReport:
        """Clear what is no longer needed."""
        with alone(self.home.folder):
            finish_all(self.home)
            cleared = gc(self.home.ledger, self.home.blobs, self._owner, rules(self.home))
        Uploads(self.home).finish_all()
        Uploads(self.home).expire()
        forget_requests(self.home)
        self.home.follower.check(self._owner)
        remove_unfinished(self.home.blobs)
        clear(self.home.scratch)
        return cleared

    def backup(self, to: str | Path) -> BackedUp:
        """Copy the home, in use or not; repeated it copies only what is new."""
        with alone(self.home.folder):
            return backup(self.home.folder, self.home.blobs, Path(to), self.home.snapshots(), folder)

    @staticmethod
    def restore(backup_folder: str | Path, home: str | Path) -> int:
        """Make a home from a backup."""
        return restore(Path(backup_folder), Path(home), folder, lambda at: open_home(at).blobs)

    def reindex(self) -> None:
        """Throw the index away and make it again from the artifacts, and from sidecars that were read in."""
        self.home.follower.reindex()
        sidecars.read_again(self.home)

    def read_sidecars(self, paths: Iterable[str | Path]) -> list[sidecars.ReadIn]:
        """Make films searchable by what lies beside them, though their home is lost."""
        return sidecars.read_in(self.home, [Path(p) for p in paths])

    def write_sidecars(self, video: str) -> list[Beside]:
        """Everything known of a video beside its film, under names that players, editors and `index` read."""
        return write_all(self.home, self.video(video))

    def doctor(self) -> tuple[Check, ...]:
        """Check every part, and say what to do."""
        return doctor(self.home)

    def _semantic(self, query: str) -> SemanticIndex | None:
        return self._semantic_index if "~" in query else None

    @cached_property
    def _semantic_index(self) -> SemanticIndex:
        from rushes.index.search.semantic import open_semantic  # noqa: PLC0415 - numpy is loaded when it is needed

        return open_semantic(self.home.models, self.home.folder)

    def _catch_up(self) -> None:
        sidecars.catch_up(self.home)

    def _control(self, job: str, command: JobCommand) -> Job:
        row = self.home.ledger.control(self.job(job).id, command)
        if row is None:
            raise Refused(f"{job} is no job")
        return row

    def _all_videos(self) -> Iterator[Video]:
        return every(lambda cursor: Page(*self.home.index.videos(self._owner, cursor, 500)))

    def _all_jobs(self) -> Iterator[Job]:
        return every(lambda cursor: self.jobs(cursor=cursor, limit=500))
