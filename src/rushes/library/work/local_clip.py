"""Cutting a clip here and now."""

from pathlib import Path

from rushes.blobs.documents import address
from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import RushesError
from rushes.domain.job import JobState
from rushes.domain.task import TaskState
from rushes.exports.files_beside import check_output_path
from rushes.home import Home
from rushes.index.port import Video
from rushes.jobs.own_outputs import copy_out
from rushes.ledger.pages import all_tasks
from rushes.library.clips import Clip, ClipRequest, submit_order
from rushes.library.work.run import stopped
from rushes.library.work.workers import JobWorker
from rushes.plan.planner import results_of
from rushes.worker.publish import sweep


def cut(home: Home, video: Video, wanted: ClipRequest, out: Path | None = None, *, signals: bool = False) -> Clip:
    """Cut [start - padding, end + padding] to the exact frame; the same request again is the same clip.

    Raises:
        Refused: the range is empty or begins after the film, or the file cannot be written.
        NeverWorks, TryAgain: it could not be cut; says why.
    """
    if out:
        check_output_path(out, (".mp4",))
    record, created = submit_order(home, video, wanted)
    job = record.doc["job"]
    if home.ledger.job(job).state is not JobState.COMPLETED:
        worker = JobWorker(home, [job], slots=0)
        worker.run(signals=signals)
        if worker.signal:
            raise stopped(worker.signal)
    else:
        sweep(home.ledger, home.blobs, home.job_names)  # a name that a killed worker still owed
    return _made(home, job, video, wanted, created, out)


def _made(home: Home, job: str, video: Video, wanted: ClipRequest, created: bool, out: Path | None) -> Clip:
    (task,) = all_tasks(home.ledger, job)
    if task.state is not TaskState.DONE:
        failure = task.failure
        raise RushesError(failure.message, failure.hint) if failure else RushesError("the clip is not finished")
    artifact = read_manifest(home.blobs, home.owner, results_of(task.spec)["clip"]).artifact("clip.mp4")
    if out:
        copy_out(home, home.blobs.local(home.owner, artifact.sha256), out)
        path = str(out)
    elif artifact.publish:
        path = address(home.blobs, artifact.publish)
    else:
        path = str(home.blobs.local(home.owner, artifact.sha256))
    id, end_us = Path(artifact.publish or job).stem, min(wanted.end_us, video.duration_us)
    shortened = end_us < wanted.end_us
    return Clip(id, video.id, wanted.start_us, end_us, path, artifact.size, created, shortened)
