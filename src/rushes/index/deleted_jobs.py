"""The jobs that were deleted with their videos, read from records."""

import json
from collections.abc import Iterable

from rushes.domain.job import Job
from rushes.records.port import Records

DELETED = "gone"  # records of this kind delete a video: id = the video's, doc = {"jobs": [those gone with it], ...}


def is_deleted(records: Records, job: Job) -> bool:
    """Whether a job was deleted with its video."""
    return bool(deleted_among(records, [job]))


def deleted_among(records: Records, jobs: Iterable[Job]) -> set[str]:
    """Those of these jobs that were deleted with their videos: one question for each owner."""
    films: dict[str, dict[str, str]] = {}
    for job in jobs:
        if video := json.loads(job.facts or "{}").get("video"):
            films.setdefault(job.owner, {})[job.id] = video
    return {job for owner, videos in films.items() for job in _gone(records, owner, videos)}


def _gone(records: Records, owner: str, videos: dict[str, str]) -> list[str]:
    found = records.get_many(DELETED, owner, set(videos.values()))
    return [job for job, video in videos.items() if video in found and job in found[video].doc["jobs"]]
