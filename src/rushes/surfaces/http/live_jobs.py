"""Jobs as the server watches them: one watch for each, whoever asks."""

from functools import lru_cache
from threading import Lock

from fastapi import Request

from rushes.library.jobs import JobProgress, Jobs

MOST = 100  # jobs that are remembered


class LiveJobs:
    """The watches of one process, each read once and then only what is new; the one idle for longest goes first."""

    def __init__(self, jobs: Jobs) -> None:
        self._watch, self._guard = lru_cache(MOST)(jobs.watch), Lock()

    def look(self, job: str) -> JobProgress:
        """The job now."""
        with self._guard:  # one look at a time: a watch remembers how far it has read
            return self._watch(job).look()


def look(request: Request, job: str) -> JobProgress:
    """A job as it is now, by the watches of this application."""
    live: LiveJobs = request.app.state.live_jobs
    return live.look(job)
