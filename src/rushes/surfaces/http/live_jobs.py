"""Progress of jobs on the server: one watch per job, shared by all requests."""

from functools import lru_cache
from threading import Lock

from fastapi import Request

from rushes.library.jobs import JobProgress, Jobs

MOST = 100  # jobs that are remembered


class LiveJobs:
    """The watches of one process; each reads only what is new. The least recently used one is dropped first."""

    def __init__(self, jobs: Jobs) -> None:
        self._watch, self._guard = lru_cache(MOST)(jobs.watch), Lock()

    def look(self, job: str) -> JobProgress:
        """The current progress of a job, by the watches of this application."""
        with self._guard:  # one look at a time: a watch remembers how far it has read
            return self._watch(job).look()


def look(request: Request, job: str) -> JobProgress:
    """A job as it is now, by the watches of this application."""
    live: LiveJobs = request.app.state.live_jobs
    return live.look(job)
