"""Deletes a video: its results go; the original stays unless it was uploaded and its deletion was requested.

First a record says that it is gone; whatever a kill leaves undone, the same command or the next gc does.
"""

from contextlib import suppress
from functools import partial

from rushes.blobs.documents import address
from rushes.domain.errors import NotFound, Refused
from rushes.domain.job import Job, JobCommand, JobState
from rushes.home import Home
from rushes.index.deleted_jobs import DELETED
from rushes.index.follower import CORRECTION, NAME, SELECTION
from rushes.index.port import Video
from rushes.jobs import control
from rushes.jobs.maintenance.deletion import RetentionRules
from rushes.jobs.maintenance.gc import drop
from rushes.jobs.maintenance.published_names import delete_path_names
from rushes.jobs.maintenance.reports import RemovalReport
from rushes.jobs.submit import CLIP
from rushes.plan.planner import JobSpec
from rushes.records.port import Record


def remove_video(home: Home, video: Video, *, originals: bool = False) -> RemovalReport:
    """Delete a video: jobs, results, clips, what people said of it; and with `originals` what was uploaded."""
    before = home.records.get(DELETED, home.owner, video.id)
    clips = [str(clip.doc["job"]) for clip in home.all_records(CLIP, video.id)]
    jobs = dict.fromkeys([*(before.doc["jobs"] if before else ()), *video.jobs, *clips])
    doc = {"jobs": list(jobs), "originals": originals, "over": False}
    return finish_removal(home, home.records.put(DELETED, home.owner, video.id, doc))


def unfinished_removal(home: Home, video: str) -> Record | None:
    """A deletion of that video which a kill cut short."""
    record = home.records.get(DELETED, home.owner, video)
    return None if record is None or record.doc["over"] else record


def retention_rules(home: Home) -> RetentionRules:
    """What may go in this home; a job is gone when its deletion is over: before, its names may still be published."""
    s = home.settings
    gone = frozenset(job for record in home.all_records(DELETED) if record.doc["over"] for job in record.doc["jobs"])
    young = max(1, s.keep_days) * 86400.0
    return RetentionRules(home.specs, s.keep_days, s.clip_days, young, s.events_ttl_days, s.jobs_ttl_days, gone)


def deleted_jobs(home: Home) -> frozenset[str]:
    """Every job whose deletion has begun."""
    return frozenset(job for record in home.all_records(DELETED) for job in record.doc["jobs"])


def finish_removals(home: Home) -> int:
    """Do what killed deletions left; answers how many there were."""
    left = [record for record in home.all_records(DELETED) if not record.doc["over"]]
    for record in left:
        finish_removal(home, record)
    return len(left)


def finish_removal(home: Home, gone: Record) -> RemovalReport:
    """Everything that follows from the record, in any state that a kill may have left; repeatable."""
    jobs = [job for id in gone.doc["jobs"] if (job := _stopped(home, id))]
    ids, announce = [job.id for job in jobs], partial(control.announce, home)
    for job in jobs:
        delete_path_names(home, job)
    results = drop(home.ledger, home.blobs, gone.owner, ids, deleted_jobs(home), announce)
    files = _delete_uploads(home, jobs) if gone.doc["originals"] else ()
    _forget(home, gone.id)
    home.records.put(DELETED, gone.owner, gone.id, {**gone.doc, "over": True})
    home.follower.catch_up()
    return RemovalReport(gone.id, tuple(ids), results, files)


def _stopped(home: Home, id: str) -> Job | None:
    """A job that is over: what failed is revived first, because only what goes on can be cancelled."""
    with suppress(NotFound):
        job = home.ledger.job(id)
        if job.state is JobState.FAILED:
            control.retry(home, id)
        if job.state not in (JobState.COMPLETED, JobState.CANCELLED):
            with suppress(Refused):
                control.command(home, id, JobCommand.CANCEL)
        return job
    return None


def _forget(home: Home, video: str) -> None:
    """What people said of it."""
    home.records.delete(NAME, home.owner, video)
    for kind in (CORRECTION, SELECTION, CLIP):
        for record in home.all_records(kind, video):
            home.records.delete(kind, home.owner, record.id)


def _delete_uploads(home: Home, jobs: list[Job]) -> tuple[str, ...]:
    """Originals that were sent to us; whatever lies elsewhere is only referenced and is never touched."""
    gone = []
    for job in jobs:
        source = JobSpec.from_text(job.payload).source
        path = (home.originals / source.path).resolve()
        if source.far and (key := _own_key(home, source.path)):
            home.blobs.delete(key)
            gone.append(source.path)
        elif not source.far and path.is_relative_to(home.folder.resolve() / "uploads") and path.is_file():
            path.unlink()
            gone.append(str(path))
    return tuple(gone)


def _own_key(home: Home, path: str) -> str:
    """The key of an upload in the prefix's own bucket, "" for what lies elsewhere."""
    prefix = address(home.blobs, "input").removesuffix("input")
    key = path.removeprefix(prefix)
    return key if path.startswith(prefix) and key.startswith("input/job_") else ""
