"""What the document says of metrics, with the names that it lists."""

from rushes.metrics import FAMILIES
from rushes.otlp.messages import dotted

LISTED = {  # after the name of the program
    "events.publish.total": "counter",
    "events.publish.errors.total": "counter",
    "events.publish.duration": "histogram",
    "events.persisted.total": "counter",
    "events.dropped.total": "counter",
    "streams.active": "gauge",
    "streams.historical_replay.duration": "histogram",
    "streams.historical_replay.events.total": "counter",
    "jobs.enqueued.total": "counter",
    "jobs.dequeued.total": "counter",
    "jobs.completed.total": "counter",
    "jobs.visibility_updates.total": "counter",
    "dynamodb.operations.total": "counter",
    "dynamodb.throttles.total": "counter",
    "dynamodb.batch_retries.total": "counter",
    "channels.overflow.total": "counter",
}


def test_every_metric_that_is_listed_is_told_under_its_name() -> None:
    """Metrics Reference: every metric is exported by OTLP under the document's name and of its kind.

    Where: metrics.py, otlp/messages.py
    """
    told = {dotted(name): kind for name, (kind, _) in FAMILIES.items()}
    assert {f"rushes.{name}": kind for name, kind in LISTED.items()}.items() <= told.items()
