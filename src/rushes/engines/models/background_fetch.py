"""Models that are fetched in the background: a worker begins at once, and the tasks that need them wait."""

import threading
import time
from collections.abc import Callable, Sequence

from rushes.domain.errors import RushesError
from rushes.engines.models.store import ModelStore

LOOK_SECONDS = 10.0  # between two looks whether somebody else has fetched them
OnFetch = Callable[[Sequence[str], RushesError | None], None]  # models: their fetch begins, or failed of this error


class BackgroundFetch:
    """Fetches the models that are missing on this machine, in a thread."""

    def __init__(self, store: ModelStore, missing: Callable[[], Sequence[str]], on_fetch: OnFetch) -> None:
        self._store, self._missing, self._on_fetch = store, missing, on_fetch
        self._still_missing = missing()
        self._looked = time.monotonic()
        self._thread = threading.Thread(target=self._fetch, name="models", daemon=True)
        if self._still_missing:
            self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it still tries."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Until it has tried; those that are still missing are then missed by the tasks that need them."""
        self._thread.join()

    def complete(self) -> bool:
        """Whether no model is missing; looked at now and then, because somebody may fetch them by hand."""
        if self._still_missing and not self.running and time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
        return not self._still_missing

    def _fetch(self) -> None:
        self._on_fetch(self._still_missing, None)
        try:
            self._store.pull(self._still_missing)
        except RushesError as e:
            self._on_fetch(self._still_missing, e)
        self._look()

    def _look(self) -> None:
        self._looked = time.monotonic()
        self._still_missing = self._missing()
