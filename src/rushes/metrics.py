"""Figures of a process: counters, gauges and histograms with few labels, in the text format of Prometheus."""

import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

FAMILIES: Mapping[str, tuple[str, str]] = {  # what a process counts itself; each name says what it counts
    "rushes_tasks_total": ("counter", "attempts that this worker ended, by stage and outcome"),
    "rushes_task_retries_total": ("counter", "attempts of this worker that failed and are tried again, by stage"),
    "rushes_task_seconds": ("histogram", "seconds that a slot took for a task that is done, by stage"),
    "rushes_sweeps_total": ("counter", "sweeps of this worker"),
    "rushes_claims_total": ("counter", "claims of this worker, by whether they got something"),
    "rushes_hints_received_total": ("counter", "tasks that hints told this worker of"),
    "rushes_hints_up": ("gauge", "whether the server of hints answered last time"),
    "rushes_store_outages_total": ("counter", "commands of this worker that the store did not carry out"),
    "rushes_worker_slots": ("gauge", "slots of this worker, by whether they are busy"),
    "rushes_worker_memory_bytes": ("gauge", "memory of this worker and its slots"),
    "rushes_dynamodb_operations_total": ("counter", "requests to DynamoDB, by operation"),
    "rushes_dynamodb_throttles_total": ("counter", "requests that DynamoDB throttled"),
    "rushes_dynamodb_batch_retries_total": ("counter", "batches of which DynamoDB left a part, sent again"),
    "rushes_sqs_operations_total": ("counter", "requests to SQS, by operation"),
    "rushes_sqs_throttles_total": ("counter", "requests that SQS throttled"),
    "rushes_http_requests_total": ("counter", "requests answered, by method and status"),
    "rushes_http_request_seconds": ("histogram", "seconds until an answer began, by method"),
    "rushes_streams_events_total": ("counter", "events handed to streams of this server"),
    "rushes_channels_overflow_total": (
        "counter",
        "streams that were closed, or lost output, because their reader was too slow",
    ),
}
BOUNDS = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)  # seconds, of histograms
MOST = 500  # sets of labels of one family; whatever comes then is counted as "other"
Labels = tuple[tuple[str, str], ...]


def labelled(**labels: object) -> str:
    """Labels as they stand in braces."""
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels.items())


def family(name: str, kind: str, help: str, values: Mapping[str, float]) -> Iterator[str]:
    """The lines of one family; `values` by labels as they stand in braces."""
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {value:.15g}" if labels else f"{name} {value:.15g}"


@dataclass(slots=True)
class _Histogram:
    """How many were at most so large, and their sum."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, value: float) -> None:
        self.buckets[bisect_left(BOUNDS, value)] += 1
        self.total += value


class Registry:
    """What one process, or one server in it, has counted; any thread may count."""

    def __init__(self) -> None:
        self._values: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, _Histogram]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Count."""
        with self._lock:
            some = self._values.setdefault(name, {})
            key = _bounded(some, labels)
            some[key] = some.get(key, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Say how much there is now."""
        with self._lock:
            some = self._values.setdefault(name, {})
            some[_bounded(some, labels)] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add to a histogram."""
        with self._lock:
            some = self._histograms.setdefault(name, {})
            some.setdefault(_bounded(some, labels), _Histogram()).add(value)

    def lines(self) -> list[str]:
        """Everything, in the order in which the families are declared."""
        with self._lock:
            return [line for name, (kind, help) in FAMILIES.items() for line in self._lines(name, kind, help)]

    def _lines(self, name: str, kind: str, help: str) -> Iterator[str]:
        if values := self._values.get(name):
            yield from family(name, kind, help, {labelled(**dict(key)): values[key] for key in sorted(values)})
        if histograms := self._histograms.get(name):
            yield from family(name, kind, help, {})
            for key in sorted(histograms):
                yield from _histogram_lines(name, dict(key), histograms[key])


def _histogram_lines(name: str, labels: dict[str, str], histogram: _Histogram) -> Iterator[str]:
    count = 0
    for bound, n in zip((*map(str, BOUNDS), "+Inf"), histogram.buckets, strict=True):
        count += n
        yield f"{name}_bucket{{{labelled(**labels, le=bound)}}} {count}"
    about = f"{{{labelled(**labels)}}}" if labels else ""
    yield f"{name}_sum{about} {histogram.total:.9g}"
    yield f"{name}_count{about} {count}"


def _bounded(known: Mapping[Labels, object], labels: Mapping[str, str]) -> Labels:
    key = tuple(sorted(labels.items()))
    return key if key in known or len(known) < MOST else tuple((name, "other") for name, _ in key)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


PROCESS = Registry()  # of this process, like its log
