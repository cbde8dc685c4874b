"""Metrics for a collector: those of /metrics, sent at intervals instead of being scraped."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rushes.metrics import Family
from rushes.otlp.collector import ENVIRON, METRICS, Collector, Environment, collector, number, resource
from rushes.telemetry import BugLog

INTERVAL_SECONDS = 60.0
LAST_SECONDS = 3.0  # that the last figures may take when a process ends
Figures = Callable[[], Iterable[Family]]


@contextmanager
def sending_figures(process: str, figures: Figures, env: Environment = ENVIRON) -> Iterator[None]:
    """Send them meanwhile and once at the end, if a collector is named; one that is away is left alone."""
    to = collector(METRICS, env)
    if to is None:
        yield
        return
    seconds = number(env.get("OTEL_METRIC_EXPORT_INTERVAL", ""), 1000 * INTERVAL_SECONDS) / 1000
    over = threading.Event()

    def run() -> None:
        begun, about, bugs, last = time.time_ns(), resource(process, env), BugLog(), False
        while not last:
            last = over.wait(seconds)
            try:
                _send(to, about, figures(), begun)
            except Exception as e:  # noqa: BLE001 - the next figures may be right
                bugs.add(e)

    thread = threading.Thread(target=run, name="figures", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LAST_SECONDS)


def _send(to: Collector, about: dict[str, str], figures: Iterable[Family], begun: int) -> None:
    from rushes.otlp.messages import metrics_message  # noqa: PLC0415 - protobuf, when there is something to send

    to.send(metrics_message(about, figures, begun, time.time_ns()))
