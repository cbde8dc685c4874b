"""The queue of spans, and the thread that sends them in batches."""

import threading
from functools import partial

from rushes.metrics import PROCESS
from rushes.otlp.collector import ENVIRON, Collector, Environment, number, resource
from rushes.otlp.span import Span
from rushes.telemetry import BugLog

LONGEST_PAUSE = 60.0  # seconds between tries while the collector is away


class SpanQueue:
    """Spans that wait to be sent; a collector that is away costs them, once the queue is full, and nothing else."""

    def __init__(self, collector: Collector, process: str, env: Environment = ENVIRON) -> None:
        self._collector, self._process, self._env = collector, process, env
        self._most = int(number(env.get("OTEL_BSP_MAX_QUEUE_SIZE", ""), 2048))
        self._batch = min(self._most, int(number(env.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", ""), 512)))
        self._delay = number(env.get("OTEL_BSP_SCHEDULE_DELAY", ""), 5000.0) / 1000
        self._spans: list[Span] = []
        self._bugs = BugLog()
        self._news, self._over = threading.Condition(), False
        self._thread: threading.Thread | None = None

    def add(self, span: Span) -> None:
        """Send it soon; dropped if too many wait."""
        with self._news:
            if len(self._spans) >= self._most:
                PROCESS.add("rushes_spans_dropped_total")
                return
            self._spans.append(span)
            if len(self._spans) == self._batch:
                self._news.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
                self._thread.start()

    def stop(self, seconds: float) -> None:
        """Send what is left, for at most so long."""
        with self._news:
            self._over = True
            self._news.notify()
        if self._thread:
            self._thread.join(seconds)

    def _run(self) -> None:
        pause, over = self._delay, False
        while not over:
            with self._news:
                self._news.wait_for(partial(self._hurries, away=pause != self._delay), pause)
            over = self._over
            pause = self._delay if self._send() else min(LONGEST_PAUSE, 2 * pause)

    def _hurries(self, *, away: bool) -> bool:
        return self._over or (not away and len(self._spans) >= self._batch)

    def _send(self) -> bool:
        """Send all there is; False: the collector is away."""
        while some := self._spans[: self._batch]:
            if not self._send_some(some):
                return False
            with self._news:
                del self._spans[: len(some)]
        return True

    def _send_some(self, some: list[Span]) -> bool:
        """Send a batch, or drop one that no message can hold: those after it are sent."""
        from rushes.otlp.messages import spans_message  # noqa: PLC0415 - protobuf, when there is something to send

        try:
            message = spans_message(resource(self._process, self._env), some)
        except Exception as e:  # noqa: BLE001 - a bug in one span must not end the thread
            self._bugs.add(e)
            PROCESS.add("rushes_spans_dropped_total", len(some))
            return True
        return self._collector.send(message)
