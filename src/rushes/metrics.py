"""Metrics of a process: counters, gauges and histograms with few labels, in the text format of Prometheus."""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace

FAMILIES: Mapping[str, tuple[str, str]] = {  # what a process counts itself; each name says what it counts
    "rushes_tasks_total": ("counter", "attempts that ended on this worker, by stage and outcome"),
    "rushes_task_retries_total": ("counter", "failed attempts of this worker that are retried, by stage"),
    "rushes_task_seconds": ("histogram", "seconds per finished task, by stage"),
    "rushes_sweeps_total": ("counter", "sweeps of this worker"),
    "rushes_claims_total": ("counter", "claims of this worker, by whether they returned a task"),
    "rushes_hints_received_total": ("counter", "tasks announced to this worker by hints"),
    "rushes_hints_up": ("gauge", "whether the hint server responded last time"),
    "rushes_store_outages_total": ("counter", "commands of this worker that failed because the store was unavailable"),
    "rushes_worker_slots": ("gauge", "slots of this worker, by whether they are busy"),
    "rushes_worker_memory_bytes": ("gauge", "memory of this worker and its slots"),
    "rushes_worker_free_bytes": ("gauge", "free space on the disk that this worker writes to"),
    "rushes_dynamodb_operations_total": ("counter", "requests to DynamoDB, by operation"),
    "rushes_dynamodb_throttles_total": ("counter", "requests that DynamoDB throttled, by operation"),
    "rushes_dynamodb_retries_total": ("counter", "retried requests to DynamoDB, by operation"),
    "rushes_dynamodb_batch_retries_total": (
        "counter",
        "DynamoDB batches with unprocessed items, which were sent again",
    ),
    "rushes_sqs_operations_total": ("counter", "requests to SQS, by operation"),
    "rushes_sqs_throttles_total": ("counter", "requests that SQS throttled, by operation"),
    "rushes_sqs_retries_total": ("counter", "retried requests to SQS, by operation"),
    "rushes_http_requests_total": ("counter", "requests, by method and status"),
    "rushes_http_request_seconds": ("histogram", "seconds until a response began, by method"),
    "rushes_streams_events_total": ("counter", "events sent to streams of this server"),
    "rushes_channels_overflow_total": (
        "counter",
        "streams closed, or with dropped output, because the client was too slow",
    ),
    "rushes_streams_active": ("gauge", "open event streams, by protocol"),
    "rushes_streams_historical_replay_duration_seconds": (
        "histogram",
        "seconds until a stream had replayed past events",
    ),
    "rushes_streams_historical_replay_events_total": ("counter", "past events replayed to streams"),
    "rushes_events_publish_total": ("counter", "messages with worker events, by whether they were stored"),
    "rushes_events_publish_errors_total": ("counter", "messages with worker events that were not stored, by error"),
    "rushes_events_publish_duration_seconds": ("histogram", "seconds until a message with worker events was stored"),
    "rushes_events_persisted_total": ("counter", "worker events accepted by the store, repeats included"),
    "rushes_events_dropped_total": ("counter", "events that a stream did not send to its client, by reason"),
    "rushes_jobs_enqueued_total": ("counter", "jobs put into custom queues"),
    "rushes_jobs_dequeued_total": ("counter", "jobs handed to workers of custom queues"),
    "rushes_jobs_completed_total": ("counter", "jobs of custom queues that a report of their worker ended"),
    "rushes_jobs_visibility_updates_total": ("counter", "leases extended by workers of custom queues"),
    "rushes_rpc_requests_total": ("counter", "finished gRPC calls, by method and code"),
    "rushes_rpc_request_seconds": ("histogram", "seconds of gRPC calls, by method"),
    "rushes_spans_dropped_total": ("counter", "spans dropped because the trace collector is unavailable"),
}
BOUNDS = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)  # seconds, of histograms
MOST = 500  # sets of labels of one family; whatever comes then is counted as "other"
Labels = tuple[tuple[str, str], ...]


def labels(**values: object) -> Labels:
    """The labels of one value, in the order of their names."""
    return tuple(sorted((name, str(value)) for name, value in values.items()))


@dataclass(slots=True)
class Histogram:
    """How many were at most so large, and their sum."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, value: float) -> None:
        """One more."""
        self.buckets[bisect_left(BOUNDS, value)] += 1
        self.total += value

    def plus(self, other: "Histogram") -> "Histogram":
        """Both together."""
        counts = [a + b for a, b in zip(self.buckets, other.buckets, strict=True)]
        return Histogram(counts, self.total + other.total)


@dataclass(frozen=True, slots=True)
class Family:
    """Values of one name, by their labels."""

    name: str
    kind: str  # counter, gauge or histogram
    help: str
    values: Mapping[Labels, float] = field(default_factory=dict)
    histograms: Mapping[Labels, Histogram] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """As Prometheus reads them."""
        yield f"# HELP {self.name} {_escaped(self.help, quotes=False)}"
        yield f"# TYPE {self.name} {self.kind}"
        for key, value in self.values.items():
            yield f"{self.name}{_braces(key)} {value:.15g}"
        for key, histogram in self.histograms.items():
            yield from self._buckets(key, histogram)

    def _buckets(self, key: Labels, histogram: Histogram) -> Iterator[str]:
        count = 0
        for bound, n in zip((*map(str, BOUNDS), "+Inf"), histogram.buckets, strict=True):
            count += n
            yield f"{self.name}_bucket{_braces((*key, ('le', bound)))} {count}"
        yield f"{self.name}_sum{_braces(key)} {histogram.total:.9g}"
        yield f"{self.name}_count{_braces(key)} {count}"


def text(families: Iterable[Family]) -> str:
    """Everything as Prometheus reads it."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def merged(families: Iterable[Family]) -> list[Family]:
    """Those of one name as one: what a server counts, and what its process counts beside it, is added up."""
    found: dict[str, Family] = {}
    for one in families:
        known = found.get(one.name, Family(one.name, one.kind, one.help))
        values = {key: known.values.get(key, 0.0) + one.values.get(key, 0.0) for key in (*known.values, *one.values)}
        histograms = dict(known.histograms)
        for key, more in one.histograms.items():
            histograms[key] = histograms.get(key, Histogram()).plus(more)
        found[one.name] = replace(known, values=values, histograms=histograms)
    return list(found.values())


class Registry:
    """What one process, or one server in it, has counted; any thread may count."""

    def __init__(self) -> None:
        self._values: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, Histogram]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1.0, **about: str) -> None:
        """Count."""
        with self._lock:
            some = self._values.setdefault(name, {})
            key = _bounded(some, about)
            some[key] = some.get(key, 0.0) + amount

    def set(self, name: str, value: float, **about: str) -> None:
        """Say how much there is now."""
        with self._lock:
            some = self._values.setdefault(name, {})
            some[_bounded(some, about)] = value

    def observe(self, name: str, value: float, **about: str) -> None:
        """Add to a histogram."""
        with self._lock:
            some = self._histograms.setdefault(name, {})
            some.setdefault(_bounded(some, about), Histogram()).add(value)

    def families(self) -> list[Family]:
        """Everything as it is now, in the order in which it is declared."""
        with self._lock:
            return [self._family(name) for name in FAMILIES if name in self._values or name in self._histograms]

    def _family(self, name: str) -> Family:
        values, histograms = self._values.get(name, {}), self._histograms.get(name, {})
        return Family(name, *FAMILIES[name], dict(sorted(values.items())), deepcopy(histograms))


def _bounded(known: Mapping[Labels, object], about: Mapping[str, str]) -> Labels:
    key = labels(**about)
    return key if key in known or len(known) < MOST else tuple((name, "other") for name, _ in key)


def _braces(key: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in key)
    return f"{{{inside}}}" if key else ""


def _escaped(value: str, *, quotes: bool = True) -> str:
    value = value.replace("\\", r"\\").replace("\n", r"\n")
    return value.replace('"', r"\"") if quotes else value


PROCESS = Registry()  # of this process, like its log
