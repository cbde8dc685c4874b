"""Jobs that somebody looks at: each is read once, and afterwards only what is new of it."""

from collections import OrderedDict
from threading import Lock

from fastapi import Request

from rushes.library import Library
from rushes.library.jobs import JobProgress, JobWatcher
from rushes.surfaces.http.deps import library_of

MOST = 100  # jobs that are remembered


class LiveJobs:
    """The watches of one process; the one not looked at for longest is forgotten first."""

    def __init__(self) -> None:
        self._watches: OrderedDict[str, JobWatcher] = OrderedDict()
        self._guard = Lock()

    def look(self, library: Library, job: str) -> JobProgress:
        """The job now."""
        with self._guard:  # one look at a time: a watch remembers how far it has read
            watch = self._watches.pop(job, None) or library.jobs.watch(job)
            self._watches[job] = watch
            while len(self._watches) > MOST:
                self._watches.popitem(last=False)
            return watch.look()


def look(request: Request, job: str) -> JobProgress:
    """A job as it is now, by the watches of this application."""
    state = request.app.state
    if not hasattr(state, "watched"):
        state.watched = LiveJobs()
    watched: LiveJobs = state.watched
    return watched.look(library_of(request), job)
