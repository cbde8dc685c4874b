"""Clips: each is a job of one task in lane now, ahead of all other work."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from rushes.domain.errors import NotFound, Refused
from rushes.domain.job import Job, JobCommand, JobState
from rushes.domain.keys import JSON, short
from rushes.domain.span import clock
from rushes.domain.task import TaskState
from rushes.home import Home
from rushes.index.port import Video, find_video
from rushes.jobs.control import announce, announce_ready, command
from rushes.jobs.intake import wake
from rushes.jobs.originals import Original, list_originals, original
from rushes.jobs.steps import steps_of
from rushes.jobs.submit import CLIP, submit_clip
from rushes.ledger.pages import all_tasks
from rushes.library.names import stem
from rushes.library.transcript import heard_in, speech_corrections
from rushes.plan.planner import JobSpec, results_of
from rushes.records.port import Record

STATUS = {JobState.COMPLETED: "done", JobState.FAILED: "failed", JobState.CANCELLED: "cancelled"}


@dataclass(frozen=True, slots=True)
class ClipRequest:
    """What to cut, in film time; from the `proxy` it is smaller and sooner there; `subtitles`: track or burnt."""

    start_us: int
    end_us: int
    padding_ms: int
    proxy: bool = False
    subtitles: str = ""


@dataclass(frozen=True, slots=True)
class Clip:
    """A span cut out on request."""

    id: str
    video: str
    start_us: int  # film time, without the padding
    end_us: int
    path: str  # a file, or where it is in a bucket
    size: int
    made: bool  # false: it was there already
    shortened: bool = False  # the film ends before what was asked


@dataclass(frozen=True, slots=True)
class ClipStatus:
    """A clip that was ordered from a worker, and how far it is."""

    id: str
    status: str  # queued, processing, done, failed, cancelled, cleared (ask for it again)
    video: str
    start: float  # seconds
    end: float
    job: str
    title: str  # of its video, without the ending
    error: str | None = None
    created_at: str = ""
    expires_at: str = ""  # gc may delete it from then on; "" until it is done

    @property
    def published(self) -> str:
        """The name of its file when it is done, else ""."""
        return f"videos/clips/{self.video}/{self.id}.mp4" if self.status == "done" else ""


@dataclass(frozen=True, slots=True)
class Clips:
    """Clips that were ordered and are cut by workers."""

    home: Home

    def order(
        self, video: Video, start: float, end: float, padding_ms: int, *, proxy: bool = False, subtitles: str = ""
    ) -> ClipStatus:
        """Ask for a clip from a second to another; the same again is the same clip. Raises as `submit_order` does."""
        span = (round(start * 1_000_000), round(end * 1_000_000))
        record, _ = submit_order(self.home, video, ClipRequest(*span, padding_ms, proxy, subtitles))
        return self._statuses([record])[0]

    def page(self, cursor: str = "", limit: int = 50) -> tuple[list[ClipStatus], str]:
        """Clips that were ordered, and the next cursor."""
        rows, more = self.home.records.list(CLIP, self.home.owner, cursor, limit)
        return self._statuses(rows), more

    def of_video(self, video: str) -> list[ClipStatus]:
        """The clips of a video, newest first."""
        found = self._statuses([*self.home.all_records(CLIP, video)])
        return sorted(found, key=lambda clip: clip.created_at, reverse=True)

    def newest(self, limit: int = 100) -> list[ClipStatus]:
        """The newest clips of all videos."""
        found = self._statuses([*self.home.all_records(CLIP)])
        return sorted(found, key=lambda clip: clip.created_at, reverse=True)[:limit]

    def delete(self, id: str) -> ClipStatus:
        """Delete a clip: its file, its job and what is remembered of it. The same can be asked for again.

        Raises:
            NotFound: there is none.
        """
        from rushes.jobs.maintenance.gc import drop
        from rushes.jobs.maintenance.video_removal import deleted_jobs

        clip, home = self.get(id), self.home
        with suppress(Refused):
            command(home, clip.job, JobCommand.CANCEL)
        video = find_video(home.index, home.owner, clip.video)
        footage = frozenset([video.sha256] if video else ())
        drop(home.ledger, home.blobs, home.owner, [clip.job], deleted_jobs(home), partial(announce, home), footage)
        home.records.delete(CLIP, home.owner, id)
        with suppress(Refused, NotFound):
            home.ledger.control(clip.job, JobCommand.FORGET)
        return clip

    def get(self, id: str) -> ClipStatus:
        """One clip.

        Raises:
            NotFound: there is none.
        """
        record = self.home.records.get(CLIP, self.home.owner, id) if id.isascii() else None
        found = self._statuses([record]) if record else []
        if not found:
            raise NotFound(f"no clip {id[:60]!r}", what="clip")
        return found[0]

    def _statuses(self, records: Sequence[Record]) -> list[ClipStatus]:
        """Those whose job is there; done is only what still is: gc clears clips after a while."""
        ids, ledger = [r.doc["job"] for r in records], self.home.ledger
        jobs = {job.id: job for job in ledger.jobs(self.home.owner, ids=ids).rows} if ids else {}
        over = [r for r in records if r.doc["job"] in jobs and jobs[r.doc["job"]].state is JobState.COMPLETED]
        keys = {r.id: r.doc.get("result") or result_of(self.home, r.doc["job"]) for r in over}
        known = ledger.known(self.home.owner, tuple(keys.values())) if keys else {}
        cleared = {id for id, key in keys.items() if key not in known}
        return [self._status(r, jobs[r.doc["job"]], r.id in cleared) for r in records if r.doc["job"] in jobs]

    def _status(self, record: Record, job: Job, cleared: bool) -> ClipStatus:
        doc = record.doc
        status = "cleared" if cleared else STATUS.get(job.state, "processing" if job.started_at else "queued")
        steps = steps_of(self.home, job) if status == "failed" else ()
        error = next((step.error for step in steps if step.error), None)
        title, span = str(doc.get("name", "clip")), (doc["t_start"], doc["t_end"])
        times = (job.created_at, self._expiry(job) if status == "done" else "")
        return ClipStatus(record.id, status, doc["video"], *span, job.id, title, error, *times)

    def _expiry(self, job: Job) -> str:
        days = timedelta(days=self.home.settings.clip_days)
        return (datetime.fromisoformat(job.finished_at) + days).isoformat() if job.finished_at else ""


def submit_order(home: Home, video: Video, wanted: ClipRequest) -> tuple[Record, bool]:
    """Submit a clip and list it; the cutting is left to a worker. Answers its record, and whether the job is new.

    Asked again it is the same job, which goes on if it was stopped; what gc has cleared is cut again.

    Raises:
        Refused: the range is empty or begins after the film, or there is no proxy or no transcript.
    """
    _check(video, wanted)
    origin, inputs = _proxy(home, video) if wanted.proxy else _original(home, video)
    inputs |= _transcript(home, video) if wanted.subtitles else {}
    more: dict[str, JSON] = {"source": "proxy"} if wanted.proxy else {}
    more |= _captions(home, video, wanted) if wanted.subtitles else {}
    span = {"start_us": wanted.start_us, "end_us": min(wanted.end_us, video.duration_us)}
    options: dict[str, JSON] = {**span, "padding_ms": wanted.padding_ms}
    clip_id = "clip_" + short([video.id, *options.values(), *more.values()])
    options = {**options, "clip_id": clip_id, **more}
    source = replace(origin.spec.source, site="") if wanted.proxy else origin.spec.source  # every worker sees results
    question = JobSpec(origin.spec.owner, source, ("clip",), {"clip": options})
    made = submit_clip(home, question, video.name, video.sha256, inputs)
    if not made.created:
        _want_again(home, made.job)
    times = {"t_start": wanted.start_us / 1e6, "t_end": wanted.end_us / 1e6}
    doc = {"job": made.job.id, "video": video.id, **times, "name": stem(video), "result": result_of(home, made.job.id)}
    return home.records.put(CLIP, home.owner, clip_id, doc), made.created


def result_of(home: Home, job: str) -> str:
    """The key of the result that is the clip."""
    (task,) = all_tasks(home.ledger, job)
    return results_of(task.spec)["clip"]


def _want_again(home: Home, job: Job) -> None:
    """What was stopped goes on, and what gc has set aside is cut again."""
    key = result_of(home, job.id)
    if wake(home, job).state is JobState.COMPLETED and key not in home.ledger.known(job.owner, [key]):
        home.ledger.revive(job.id, again=True)
    announce_ready(home, job.id)


def _transcript(home: Home, video: Video) -> dict[str, list[str]]:
    """The transcript of the run whose speech readers see, else the newest."""
    seen = heard_in(home, video)
    for place in sorted(list_originals(home, video), key=lambda place: place.job not in seen):
        if found := _results(home, place.job, ("transcript",)):
            return found
    raise Refused(f"{video.name} has no transcript yet", f"Run: rushes run {video.name}")


def _captions(home: Home, video: Video, wanted: ClipRequest) -> dict[str, JSON]:
    """How subtitles come, and what was corrected in the clip: another correction makes another clip."""
    room = wanted.padding_ms * 1000
    first, last = wanted.start_us - room, wanted.end_us + room
    said = [c for c in speech_corrections(home, video) if c.start_us < last and c.end_us > first]
    corrections = [[c.id, c.start_us, c.end_us, c.text] for c in said]
    return {"subtitles": wanted.subtitles} | ({"corrections": corrections} if corrections else {})


def _original(home: Home, video: Video) -> tuple[Original, dict[str, list[str]]]:
    place = original(home, video)
    return place, _results(home, place.job, ("probe",))


def _proxy(home: Home, video: Video) -> tuple[Original, dict[str, list[str]]]:
    for place in list_originals(home, video):
        inputs = _results(home, place.job, ("probe", "develop", "audio"))
        if "develop.proxy" in inputs:
            return place, inputs
    raise Refused(f"{video.name} has no proxy yet", f"Run: rushes run {video.name}")


def _results(home: Home, job: str, stages: tuple[str, ...]) -> dict[str, list[str]]:
    """Result keys by stage and output, in order of time; none of a stage of which some are missing."""
    found: dict[str, list[str]] = {}
    for stage in stages:
        tasks = sorted(all_tasks(home.ledger, job, stage=stage), key=lambda task: task.chunk or 0)
        for task in tasks if all(t.state is TaskState.DONE for t in tasks) else ():
            for output, key in results_of(task.spec).items():
                found.setdefault(f"{stage}.{output}", []).append(key)
    return found


def _check(video: Video, wanted: ClipRequest) -> None:
    if not 0 <= wanted.start_us < wanted.end_us:
        raise Refused("the end of a clip must be after its start", "Write a time as 1:02:03.5, or as seconds (63.5).")
    if wanted.start_us >= video.duration_us:
        ends = clock(video.duration_us)
        raise Refused(f"{video.name} ends at {ends}, before the clip starts", f"Choose a start before {ends}.")
