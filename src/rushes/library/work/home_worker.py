"""A worker of this process for all jobs of a home, until a signal comes or nothing is left."""

from collections.abc import Sequence

from rushes.engines.models.background_fetch import BackgroundFetch, OnFetch
from rushes.home import Home
from rushes.jobs.intake import JobRequest, missing_models
from rushes.library.work.job_worker import JobModels, OnStop
from rushes.wiring import worker
from rushes.worker.drain import stop_requests
from rushes.worker.shell import Shell
from rushes.worker.task_filter import TaskFilter

__all__ = ["HomeWorker", "OnFetch"]


class HomeWorker:
    """Takes tasks of every job; those that need models which are still missing wait."""

    def __init__(
        self,
        home: Home,
        slots: int | None = None,
        lanes: Sequence[str] = (),
        *,
        until_idle: bool = False,
        on_fetch: OnFetch | None = None,
    ) -> None:
        """With `on_fetch` it fetches missing models of usual jobs meanwhile; it is called in another thread."""
        self._home, self._until_idle = home, until_idle
        self.models = BackgroundFetch(home.models, self._missing_models, on_fetch) if on_fetch else None
        self.shell = worker(home, slots=slots, lanes=lanes, until=self._nothing_left, filter=self._filter())

    def run(self, on_stop: OnStop = lambda _signal: None) -> int:
        """Work until a signal comes or, if so asked, nothing is left; the exit code."""
        signals: list[int] = []

        def stop(number: int) -> None:
            signals.append(number)
            on_stop(number)

        with stop_requests(self.shell.request_stop, self._home.settings.spot_notice, stop):
            self.shell.run()
        return 128 + signals[-1] if signals else 0

    def _missing_models(self) -> tuple[str, ...]:
        return missing_models(self._home, JobRequest())

    def _filter(self) -> TaskFilter | None:
        """None where no model is missing: who takes all tasks may take hints from a queue."""
        models = self.models
        if models is None or models.complete():
            return None
        return TaskFilter(JobModels(self._home).present, is_on=lambda: not models.complete())

    def _nothing_left(self, shell: Shell) -> bool:
        waits = not shell.state.has_space or (self.models and self.models.running)
        return self._until_idle and shell.idle and not waits
