"""Deleting a video: what was made of it goes, the original stays unless it was uploaded and that is wished for.

First a record says that it is gone; whatever a kill leaves undone, the same command or the next gc does.
"""

from contextlib import suppress
from dataclasses import dataclass

from rushes.domain.errors import NotFound, Refused
from rushes.domain.job import Command, Job, JobState
from rushes.index.follower import CORRECTION, NAME, SELECTION
from rushes.index.gone import GONE
from rushes.index.port import Video
from rushes.jobs.gc import drop
from rushes.jobs.wanted import Rules
from rushes.library.said import every, of_video
from rushes.plan.planner import Asked
from rushes.records.port import Record
from rushes.wiring import House

CLIP = "clip"  # the kind of record that remembers a clip that was asked for


@dataclass(frozen=True, slots=True)
class Removed:
    """A video that is gone: its jobs, how many results went with it, and the uploaded originals that were deleted."""

    video: str
    jobs: tuple[str, ...]
    results: int = 0
    originals: tuple[str, ...] = ()


def remove(house: House, video: Video, *, originals: bool = False) -> Removed:
    """Delete a video: jobs, results, clips, what people said of it; `originals` that were uploaded, only if wished."""
    owner = house.settings.owner
    before = house.records.get(GONE, owner, video.id)
    clips = [str(clip.doc["job"]) for clip in of_video(house, CLIP, video.id)]
    jobs = dict.fromkeys([*(before.doc["jobs"] if before else ()), *video.jobs, *clips])
    doc = {"jobs": list(jobs), "originals": originals, "over": False}
    return finish(house, house.records.put(GONE, owner, video.id, doc))


def cut_short(house: House, video: str) -> Record | None:
    """A deletion of that video which a kill cut short."""
    record = house.records.get(GONE, house.settings.owner, video)
    return None if record is None or record.doc["over"] else record


def rules(house: House) -> Rules:
    """What may go in this home; a job is gone when its deletion is over: before, its names may still be published."""
    s = house.settings
    gone = frozenset(job for record in every(house, GONE) if record.doc["over"] for job in record.doc["jobs"])
    return Rules(house.cards, s.keep_days, s.clip_days, max(1, s.keep_days) * 86400.0, gone)


def deleted(house: House) -> frozenset[str]:
    """Every job whose deletion has begun."""
    return frozenset(job for record in every(house, GONE) for job in record.doc["jobs"])


def finish_all(house: House) -> int:
    """Do what killed deletions left; answers how many there were."""
    left = [record for record in every(house, GONE) if not record.doc["over"]]
    for record in left:
        finish(house, record)
    return len(left)


def finish(house: House, gone: Record) -> Removed:
    """Everything that follows from the record, in any state that a kill may have left; repeatable."""
    jobs = [job for id in gone.doc["jobs"] if (job := _stopped(house, id))]
    results = drop(house.ledger, house.blobs, gone.owner, [job.id for job in jobs], deleted(house))
    files = _delete_uploads(house, jobs) if gone.doc["originals"] else ()
    _forget(house, gone.id)
    house.records.put(GONE, gone.owner, gone.id, {**gone.doc, "over": True})
    house.follower.catch_up()
    return Removed(gone.id, tuple(job.id for job in jobs), results, files)


def _stopped(house: House, id: str) -> Job | None:
    """A job that is over: what failed is revived first, because only what goes on can be cancelled."""
    with suppress(NotFound):
        job = house.ledger.job(id)
        if job.state is JobState.FAILED:
            house.ledger.revive(id)
        if job.state not in (JobState.COMPLETED, JobState.CANCELLED):
            with suppress(Refused):
                house.ledger.control(id, Command.CANCEL)
        return job
    return None


def _forget(house: House, video: str) -> None:
    """What people said of it."""
    owner = house.settings.owner
    house.records.delete(NAME, owner, video)
    for kind in (CORRECTION, SELECTION, CLIP):
        for record in of_video(house, kind, video):
            house.records.delete(kind, owner, record.id)


def _delete_uploads(house: House, jobs: list[Job]) -> tuple[str, ...]:
    """Originals that were sent to us; whatever lies elsewhere is only referenced and is never touched."""
    gone = []
    for job in jobs:
        source = Asked.from_text(job.payload).source
        path = (house.originals / source.path).resolve()
        if source.far and (key := _own_key(house, source.path)):
            house.blobs.remove(key)
            gone.append(source.path)
        elif not source.far and path.is_relative_to(house.home.resolve() / "uploads") and path.is_file():
            path.unlink()
            gone.append(str(path))
    return tuple(gone)


def _own_key(house: House, address: str) -> str:
    """The key of an upload in the home's own bucket, "" for what lies elsewhere."""
    home = house.blobs.address("input").removesuffix("input")
    key = address.removeprefix(home)
    return key if address.startswith(home) and key.startswith("input/job_") else ""
