"""What there is to find, counted at most once in a while: counting reads every line, and a page must not."""

import threading
import time
from collections.abc import Sequence

from fastapi import Request

from rushes.library.search import Summary
from rushes.library.videos import Video
from rushes.surfaces.http.deps import library_of

KEPT_SECONDS = 30.0


class IndexCounts:
    """The sums of one process's library, kept until they are old or a newer video is there."""

    def __init__(self) -> None:
        self._kept: tuple[float, object, Summary] | None = None
        self._guard = threading.Lock()

    def of(self, request: Request, newest: Sequence[Video]) -> Summary:
        """The sums; `newest` are videos that a page has read anyway: when they change, sums are counted again."""
        seen = [(v.id, v.state) for v in newest[:6]]
        with self._guard:
            if self._kept is None or self._kept[1] != seen or time.monotonic() > self._kept[0] + KEPT_SECONDS:
                self._kept = (time.monotonic(), seen, library_of(request).summary())
            return self._kept[2]


def index_counts(request: Request, newest: Sequence[Video]) -> Summary:
    """The sums for a page."""
    state = request.app.state
    if not hasattr(state, "figures"):
        state.figures = IndexCounts()
    kept: IndexCounts = state.figures
    return kept.of(request, newest)
