"""Spans and metrics as OTLP messages (extra `otel`)."""

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from rushes.metrics import BOUNDS, Family, Histogram
from rushes.otlp.span import Attribute, Span

_SCOPE = InstrumentationScope(name="rushes")
_KINDS = {name: getattr(trace_pb2.Span, f"SPAN_KIND_{name.upper()}") for name in ("internal", "server", "client")}
_CUMULATIVE = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
_WORDS = ("historical_replay", "batch_retries", "visibility_updates")  # that stay one word in a dotted name


def spans_message(resource: Mapping[str, str], spans: Iterable[Span]) -> bytes:
    """A message with spans of this process."""
    told = trace_pb2.ScopeSpans(scope=_SCOPE, spans=map(_span, spans))
    about = trace_pb2.ResourceSpans(resource=_resource(resource), scope_spans=[told])
    return bytes(ExportTraceServiceRequest(resource_spans=[about]).SerializeToString())


def metrics_message(resource: Mapping[str, str], families: Iterable[Family], begun: int, now: int) -> bytes:
    """A message with figures of this process, which counts since `begun` (ns)."""
    told = metrics_pb2.ScopeMetrics(scope=_SCOPE, metrics=[_metric(family, begun, now) for family in families])
    about = metrics_pb2.ResourceMetrics(resource=_resource(resource), scope_metrics=[told])
    return bytes(ExportMetricsServiceRequest(resource_metrics=[about]).SerializeToString())


def dotted(name: str) -> str:
    """The name that OTLP knows a family of Prometheus by: rushes_jobs_enqueued_total is rushes.jobs.enqueued.total."""
    if not name.startswith("rushes_"):
        return name
    name = name.removesuffix("_seconds") if name.endswith("_duration_seconds") else name  # its unit is told apart
    for word in _WORDS:
        name = name.replace(word, word.replace("_", "\0"))
    return name.replace("_", ".").replace("\0", "_")


def _resource(about: Mapping[str, str]) -> Any:
    return Resource(attributes=_attributes(about))


def _attributes(about: Mapping[str, Attribute]) -> list[Any]:
    return [KeyValue(key=name, value=_value(value)) for name, value in about.items()]


def _value(value: Attribute) -> Any:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
    return AnyValue(string_value=_legible(value))


def _legible(text: str) -> str:
    """As UTF-8 can hold it: names of files may be something else."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _span(span: Span) -> Any:
    error = trace_pb2.Status.STATUS_CODE_ERROR
    status = trace_pb2.Status(code=error, message=_legible(span.failed)) if span.failed else None
    return trace_pb2.Span(
        trace_id=bytes.fromhex(span.trace), span_id=bytes.fromhex(span.id), parent_span_id=bytes.fromhex(span.parent),
        name=span.name, kind=_KINDS[span.kind], start_time_unix_nano=span.begun, end_time_unix_nano=span.ended,
        attributes=_attributes(span.about), status=status,
    )  # fmt: skip


def _metric(family: Family, begun: int, now: int) -> Any:
    metric = metrics_pb2.Metric(name=dotted(family.name), description=family.help)
    if family.kind == "histogram":
        metric.unit = "s"
        points = [_histogram(dict(labels), one, begun, now) for labels, one in family.histograms.items()]
        metric.histogram.CopyFrom(metrics_pb2.Histogram(data_points=points, aggregation_temporality=_CUMULATIVE))
        return metric
    counts = family.kind == "counter"
    points = [
        metrics_pb2.NumberDataPoint(
            attributes=_attributes(dict(labels)), as_double=value, time_unix_nano=now,
            start_time_unix_nano=begun if counts else 0,
        )
        for labels, value in family.values.items()
    ]  # fmt: skip
    if counts:
        summed = metrics_pb2.Sum(data_points=points, aggregation_temporality=_CUMULATIVE, is_monotonic=True)
        metric.sum.CopyFrom(summed)
    else:
        metric.gauge.CopyFrom(metrics_pb2.Gauge(data_points=points))
    return metric


def _histogram(labels: Mapping[str, str], one: Histogram, begun: int, now: int) -> Any:
    return metrics_pb2.HistogramDataPoint(
        attributes=_attributes(labels), start_time_unix_nano=begun, time_unix_nano=now, count=sum(one.buckets),
        sum=one.total, bucket_counts=one.buckets, explicit_bounds=BOUNDS,
    )  # fmt: skip
