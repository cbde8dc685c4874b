"""Cutting: a clip is a job of one task through the same door, and jumps every queue."""

from dataclasses import dataclass, replace
from pathlib import Path

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import Refused, RushesError
from rushes.domain.job import Job, JobState
from rushes.domain.keys import short
from rushes.domain.span import clock
from rushes.domain.task import TaskState
from rushes.exports.output_path import check_output_path
from rushes.home import Home
from rushes.index.port import Video
from rushes.jobs.intake import wake
from rushes.jobs.originals import Original, original, places
from rushes.jobs.own_outputs import remember
from rushes.jobs.submit import submit_clip
from rushes.ledger.pages import all_tasks
from rushes.library.desk import Desk
from rushes.library.laid import lay
from rushes.library.run import Work, stopped
from rushes.plan.planner import JobSpec, results_of
from rushes.worker.publish import sweep


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


def cut(
    home: Home,
    video: Video,
    start_us: int,
    end_us: int,
    padding_ms: int,
    out: Path | None = None,
    *,
    proxy: bool = False,
    subtitles: str = "",
    signals: bool = False,
) -> Clip:
    """Cut [start - padding, end + padding] to the exact frame; the same request again is the same clip.

    From the `proxy` it is smaller and sooner there, and the original need not be; `subtitles`: track or burnt.

    Raises:
        Refused: the range is empty or begins after the film, or the file cannot be written.
        NeverWorks, TryAgain: it could not be cut; says why.
    """
    _check(video, start_us, end_us)
    asked, end_us = end_us, min(end_us, video.duration_us)
    if out:
        check_output_path(out, (".mp4",))
    job, _, created = ask(home, video, start_us, end_us, padding_ms, proxy=proxy, subtitles=subtitles)
    if home.ledger.job(job).state is not JobState.COMPLETED:
        work = Work(home, [job], slots=0)
        work.run(signals=signals)
        if work.signal:
            raise stopped(work.signal)
    else:
        sweep(home.ledger, home.blobs)  # a name that a killed worker still owed
    return replace(_made(home, job, video.id, start_us, end_us, created, out), shortened=end_us < asked)


def ask(
    home: Home,
    video: Video,
    start_us: int,
    end_us: int,
    padding_ms: int,
    *,
    proxy: bool = False,
    subtitles: str = "",
) -> tuple[str, str, bool]:
    """Submit a clip and leave the cutting to a worker; answers its job, its id, and whether the job is new.

    Asked again it is the same job, which goes on if it was stopped; what gc has cleared is cut again.

    Raises:
        Refused: the range is empty or begins after the film, or there is no proxy or no transcript.
    """
    _check(video, start_us, end_us)
    end_us = min(end_us, video.duration_us)
    place, inputs = _proxy(home, video) if proxy else _original(home, video)
    inputs |= _transcript(home, video) if subtitles else {}
    more = {"source": "proxy"} if proxy else {}
    more |= {"subtitles": subtitles} if subtitles else {}
    clip_id = "clip_" + short([video.id, start_us, end_us, padding_ms, *more.values()])
    options = {"start_us": start_us, "end_us": end_us, "padding_ms": padding_ms, "clip_id": clip_id, **more}
    question = JobSpec(place.asked.owner, place.asked.source, ("clip",), {"clip": options})
    made = submit_clip(home.ledger, home.transport, home.specs["clip"], question, video.name, video.sha256, inputs)
    if not made.created:
        _want_again(home, made.job)
    return made.job.id, clip_id, made.created


def result_of(home: Home, job: str) -> str:
    """The key of the result that is the clip."""
    (task,) = all_tasks(home.ledger, job)
    return results_of(task.spec)["clip"]


def _want_again(home: Home, job: Job) -> None:
    """What was stopped goes on, and what gc has set aside is cut again."""
    key = result_of(home, job.id)
    if wake(home, job).state is JobState.COMPLETED and key not in home.ledger.known(job.owner, [key]):
        home.ledger.revive(job.id, again=True)
    Desk(home).announce(tuple(task.id for task in all_tasks(home.ledger, job.id, TaskState.READY)))


def _transcript(home: Home, video: Video) -> dict[str, list[str]]:
    for place in places(home, video):
        if found := _results(home, place.job, ("transcript",)):
            return found
    raise Refused(f"nobody has listened to {video.name} yet", f"Have it transcribed: rushes run {video.name}")


def _original(home: Home, video: Video) -> tuple[Original, dict[str, list[str]]]:
    place = original(home, video)
    return place, _results(home, place.job, ("probe",))


def _proxy(home: Home, video: Video) -> tuple[Original, dict[str, list[str]]]:
    for place in places(home, video):
        inputs = _results(home, place.job, ("probe", "develop", "audio"))
        if "develop.proxy" in inputs:
            return place, inputs
    raise Refused(f"there is no proxy of {video.name} yet", f"Make one: rushes run {video.name}")


def _results(home: Home, job: str, stages: tuple[str, ...]) -> dict[str, list[str]]:
    """Result keys by stage and output, in order of time; none of a stage of which some are missing."""
    found: dict[str, list[str]] = {}
    for stage in stages:
        tasks = sorted(all_tasks(home.ledger, job, stage=stage), key=lambda task: task.chunk or 0)
        for task in tasks if all(t.state is TaskState.DONE for t in tasks) else ():
            for output, key in results_of(task.spec).items():
                found.setdefault(f"{stage}.{output}", []).append(key)
    return found


def _check(video: Video, start_us: int, end_us: int) -> None:
    if not 0 <= start_us < end_us:
        raise Refused("a clip needs a start and a later end", "Times are like 1:02:03.5 or 63.5")
    if start_us >= video.duration_us:
        ends = clock(video.duration_us)
        raise Refused(f"{video.name} ends at {ends}, before the clip begins", f"Choose a start before {ends}.")


def _made(home: Home, job: str, video: str, start_us: int, end_us: int, created: bool, out: Path | None) -> Clip:
    (task,) = all_tasks(home.ledger, job)
    if task.state is not TaskState.DONE:
        raise _trouble(task.failure.message if task.failure else "the clip is not finished", task.failure)
    owner = home.settings.owner
    artifact = read_manifest(home.blobs, owner, results_of(task.spec)["clip"]).artifact("clip.mp4")
    if out:
        lay(home.blobs.local(owner, artifact.sha256), out)
        remember(home, out)
        path = str(out)
    elif artifact.publish:
        path = home.blobs.address(artifact.publish)
    else:
        path = str(home.blobs.local(owner, artifact.sha256))
    return Clip(Path(artifact.publish or job).stem, video, start_us, end_us, path, artifact.size, created)


def _trouble(message: str, failure: object) -> RushesError:
    return RushesError(message, getattr(failure, "hint", None))
