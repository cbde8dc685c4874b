"""Weights that are fetched beside the work: a worker begins at once, and what needs them waits for them."""

import threading
import time
from collections.abc import Callable, Sequence

from rushes.domain.errors import RushesError
from rushes.home import Home
from rushes.jobs.intake import JobRequest, missing_models

LOOK_SECONDS = 10.0  # between two looks whether somebody else has fetched them


class Weights:
    """What usual work lacks on this machine, while it is fetched."""

    def __init__(self, home: Home, told: Callable[[Sequence[str], RushesError | None], None]) -> None:
        """`told` hears what is fetched, and how it ended if it could not be (called in another thread)."""
        self._house, self._told = home, told
        self._lacks = missing_models(home, JobRequest())
        self._looked = time.monotonic()
        self._thread = threading.Thread(target=self._fetch, name="weights", daemon=True)
        if self._lacks:
            self._thread.start()

    @property
    def fetching(self) -> bool:
        """Whether it still tries."""
        return self._thread.is_alive()

    def here(self) -> bool:
        """Whether nothing is lacking; looked at now and then, for they may be fetched by hand."""
        if self._lacks and not self.fetching and time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
        return not self._lacks

    def _fetch(self) -> None:
        self._told(self._lacks, None)
        try:
            self._house.models.pull(self._lacks, lambda _id, _done, _all: None)
        except RushesError as e:
            self._told(self._lacks, e)
        self._look()

    def _look(self) -> None:
        self._looked = time.monotonic()
        self._lacks = missing_models(self._house, JobRequest())
