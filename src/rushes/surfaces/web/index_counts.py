"""What there is to find, counted at most once in a while: counting reads every line, and a page must not."""

import threading
import time

from fastapi import Request

from rushes.library import Library
from rushes.library.search import Summary
from rushes.surfaces.http.deps import library_of

KEPT_SECONDS = 30.0
NEWEST = 6  # videos that are looked at: when they change, sums are counted again


class IndexCounts:
    """The sums of one process's library, kept until they are old or a newer video is there."""

    def __init__(self) -> None:
        self._kept: tuple[float, object, Summary] | None = None
        self._guard = threading.Lock()

    def of(self, library: Library) -> Summary:
        """The sums."""
        seen = [(v.id, v.state) for v in library.videos.page("", NEWEST)[0]]
        with self._guard:
            if self._kept is None or self._kept[1] != seen or time.monotonic() > self._kept[0] + KEPT_SECONDS:
                self._kept = (time.monotonic(), seen, library.summary())
            return self._kept[2]


def index_counts(request: Request) -> Summary:
    """The sums for a page."""
    kept: IndexCounts = request.app.state.index_counts
    return kept.of(library_of(request))
