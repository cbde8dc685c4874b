"""Telemetry is sent as the variables of OpenTelemetry say; a collector that is away loses as little as can be."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from rushes import tracing
from rushes.domain.task import Finish, Lease, LeaseStatus, with_trace
from rushes.library.work.task_spans import TaskSpans
from rushes.metrics import PROCESS, Family, Registry, labels, merged, text
from rushes.otlp.collector import METRICS, TRACES, Collector, collector, resource
from rushes.otlp.messages import dotted, metrics_message
from rushes.otlp.span import Span
from rushes.otlp.span_queue import SpanQueue
from rushes.tracing import Context, context_of, sampler
from rushes.worker.inputs import Claimed, RenewalReply, TaskFinished
from tests.otlp_receiver import Collector as Receiver
from tests.otlp_receiver import collecting
from tests.promql import scraped

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with collecting() as receiver:
        yield receiver


def to(receiver: Receiver, **more: str) -> Collector:
    found = collector(TRACES, {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **more})
    assert found
    return found


def spans(n: int) -> list[Span]:
    return [Span(TRACE, f"{number:016x}", PARENT, f"span {number}", ended=1) for number in range(1, n + 1)]


def dropped() -> float:
    return sum(scraped(text(PROCESS.families())).get("rushes_spans_dropped_total", {}).values())


def wait_until(queue: SpanQueue, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert queue._thread
        assert queue._thread.is_alive()
        assert time.monotonic() < end
        queue._thread.join(0.01)


def test_spans_wait_for_a_collector_that_is_busy_and_come_once(receiver: Receiver) -> None:
    receiver.busy = 3
    queue = SpanQueue(to(receiver), "test", {"OTEL_BSP_SCHEDULE_DELAY": "5", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4"})
    for span in spans(10):
        queue.add(span)
    wait_until(queue, lambda: len(receiver.spans) == 10)
    queue.stop(60)
    assert [span.name for span in receiver.spans] == [f"span {n}" for n in range(1, 11)]
    assert len(receiver.headers) >= 3 + 3, "three were told to come again, and ten make three batches"


def test_what_does_not_fit_is_dropped_and_counted(receiver: Receiver) -> None:
    before = dropped()
    queue = SpanQueue(replace(to(receiver), url="http://127.0.0.1:9"), "test", {"OTEL_BSP_MAX_QUEUE_SIZE": "4"})
    for span in spans(6):
        queue.add(span)
    queue.stop(60)
    assert dropped() - before == 2


def test_spans_go_on_after_an_answer_that_is_not_http_and_a_span_that_no_message_holds(receiver: Receiver) -> None:
    receiver.garbled = 1  # as a gRPC port answers
    queue = SpanQueue(to(receiver), "test", {"OTEL_BSP_SCHEDULE_DELAY": "5", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1"})
    before = dropped()
    first, named, bad, last = spans(4)
    named.about["rushes.path"] = named.failed = "film \udcff"  # a file name that is not UTF-8
    bad.about["rushes.number"] = 2**70
    for span in (first, named, bad, last):
        queue.add(span)
    wait_until(queue, lambda: len(receiver.spans) == 3)
    queue.stop(60)
    assert [span.name for span in receiver.spans] == ["span 1", "span 2", "span 4"]
    assert receiver.spans[1].about["rushes.path"] == "film ?"
    assert dropped() - before == 1


def test_headers_compression_and_who_sends_are_as_the_variables_say(receiver: Receiver) -> None:
    headers = {"OTEL_EXPORTER_OTLP_HEADERS": "x-team=a%20b, x-other=1", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
    about = {"OTEL_SERVICE_NAME": "films", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=night"}
    queue = SpanQueue(to(receiver, **headers), "test", about)
    queue.add(spans(1)[0])
    queue.stop(60)
    (got,) = receiver.headers
    assert (got["x-team"], got["x-other"], got["content-encoding"]) == ("a b", "1", "gzip")
    assert [span.service for span in receiver.spans] == ["films"]
    assert resource("worker", about)["deployment.environment"] == "night"
    assert resource("worker", {})["service.name"] == "rushes worker"


def test_one_kind_of_telemetry_can_have_an_address_of_its_own() -> None:
    both = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m/here"}
    urls = [found.url for kind in (TRACES, METRICS) if (found := collector(kind, both))]
    assert urls == ["http://c:4318/v1/traces", "http://m/here"]
    assert collector(METRICS, {**both, "OTEL_METRICS_EXPORTER": "none"}) is None


def test_figures_are_the_same_for_prometheus_and_for_a_collector() -> None:
    registry = Registry()
    registry.add("rushes_tasks_total", 3, stage="probe", outcome="done")
    registry.set("rushes_hints_up", 1)
    for seconds in (0.2, 400.0, 5000.0):
        registry.observe("rushes_task_seconds", seconds, stage='a"b')
    message = ExportMetricsServiceRequest.FromString(metrics_message({"service.name": "x"}, registry.families(), 5, 9))
    (told,) = message.resource_metrics[0].scope_metrics
    by_name = {metric.name: metric for metric in told.metrics}
    assert set(by_name) == {"rushes.tasks.total", "rushes.hints.up", "rushes.task.seconds"}
    (count,) = by_name["rushes.tasks.total"].sum.data_points
    assert by_name["rushes.tasks.total"].sum.is_monotonic
    assert (count.as_double, count.start_time_unix_nano, count.time_unix_nano) == (3, 5, 9)
    assert {a.key: a.value.string_value for a in count.attributes} == {"stage": "probe", "outcome": "done"}
    assert by_name["rushes.hints.up"].gauge.data_points[0].as_double == 1
    (histogram,) = by_name["rushes.task.seconds"].histogram.data_points
    assert (histogram.count, histogram.sum, list(histogram.bucket_counts)) == (
        3,
        5400.2,
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1],
    )
    lines = text(registry.families()).splitlines()
    assert 'rushes_task_seconds_bucket{stage="a\\"b",le="+Inf"} 3' in lines


def test_what_a_server_and_its_process_both_count_is_one_family() -> None:
    one, other = Registry(), Registry()
    for registry, seconds in ((one, 0.2), (other, 400.0)):
        registry.add("rushes_tasks_total", stage="probe")
        registry.observe("rushes_task_seconds", seconds)
    other.add("rushes_tasks_total", stage="shots")
    lines = text(merged([*one.families(), *other.families()])).splitlines()
    assert {'rushes_tasks_total{stage="probe"} 2', 'rushes_tasks_total{stage="shots"} 1'} <= set(lines)
    assert {"rushes_task_seconds_count 2", "rushes_task_seconds_sum 400.2"} <= set(lines)
    assert len({line for line in lines if line.startswith("# TYPE")}) == len([x for x in lines if "# TYPE" in x]) == 2


def test_help_and_labels_are_escaped() -> None:
    family = Family("rushes_x", "gauge", 'a "word"\nand \\', {labels(part='a"\n\\'): 1})
    assert text([family]) == (
        '# HELP rushes_x a "word"\\nand \\\\\n# TYPE rushes_x gauge\nrushes_x{part="a\\"\\n\\\\"} 1\n'
    )


@pytest.mark.parametrize(
    ("prometheus", "otlp"),
    [
        ("rushes_events_publish_errors_total", "rushes.events.publish.errors.total"),
        ("rushes_streams_historical_replay_duration_seconds", "rushes.streams.historical_replay.duration"),
        ("rushes_dynamodb_batch_retries_total", "rushes.dynamodb.batch_retries.total"),
        ("rushes_jobs_visibility_updates_total", "rushes.jobs.visibility_updates.total"),
        ("ConversionSecondsPerMb", "ConversionSecondsPerMb"),
    ],
)
def test_names_have_dots_for_a_collector(prometheus: str, otlp: str) -> None:
    assert dotted(prometheus) == otlp


@pytest.mark.parametrize(
    ("env", "expected"),  # of a root, below what is sampled, and below what is not
    [
        ({}, (True, True, False)),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, (False, False, False)),
        ({"OTEL_TRACES_SAMPLER": "always_on"}, (True, True, True)),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, (False, True, False)),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.3"}, (False, False, False)),
        ({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.9"}, (True, True, False)),
    ],
)
def test_who_is_recorded_is_decided_as_the_variables_say(
    env: Mapping[str, str], expected: tuple[bool, bool, bool]
) -> None:
    decide: Callable[[Context | None, str], bool] = sampler(env)
    contexts = (None, Context(TRACE, PARENT, sampled=True), Context(TRACE, PARENT, sampled=False))
    assert tuple(decide(context, TRACE) for context in contexts) == expected


@pytest.mark.parametrize(
    "header",
    ["", "00", f"00-{TRACE}-{PARENT}", f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01",
     f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01\n", "\udcff" * 55],
)  # fmt: skip
def test_a_context_that_is_none_is_left_alone(header: str) -> None:
    assert context_of(header) is None


def test_below_what_is_not_sampled_nothing_is_recorded_but_the_context_goes_on(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    tracing.start("test")
    try:
        with tracing.span("unseen", f"00-{TRACE}-{PARENT}-00"):
            assert tracing.current().startswith(f"00-{TRACE}-")
            assert tracing.current().endswith("-00")
            with tracing.inner_span("also unseen"), tracing.span("so is this"):
                tracing.begin_task("job.stage", tracing.current(), {})
                tracing.end_task("job.stage", {})
        with pytest.raises(ZeroDivisionError), tracing.span("seen"):
            _ = 1 / 0
    finally:
        tracing.stop()
    assert [span.name for span in receiver.spans] == ["seen"]


def test_an_attempt_that_was_lost_or_cancelled_has_its_span_and_nothing_is_kept_of_it(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    tracing.start("test")
    spec = with_trace("{}", f"00-{TRACE}-{PARENT}-01")
    lost, cancelled = (Lease(f"job_a.{name}", 3, "job_a", name, None, "cpu", spec, 0, 0) for name in ("one", "two"))
    statuses = {(lost.task, 3): LeaseStatus.LOST, (cancelled.task, 3): LeaseStatus.CANCELLED}
    watch = TaskSpans()
    try:
        watch.on_input(Claimed(("cpu",), (lost, cancelled), 2))
        watch.on_input(TaskFinished(Finish(lost.task, 3)))
        watch.on_input(RenewalReply({(lost.task, 2): LeaseStatus.LOST}, drain=False, gone=False))
        with tracing.of_task(lost.task, "blobs.put"):
            pass
        watch.on_input(RenewalReply(statuses, drain=False, gone=False))
        assert (watch._begun, watch._ended, tracing._tasks) == ({}, {}, {})
    finally:
        tracing.stop()
    told = {span.name: span for span in receiver.spans}
    assert told["blobs.put"].parent == told["task one"].id
    assert [told[f"task {name}"].about["rushes.outcome"] for name in ("one", "two")] == ["lost", "cancelled"]
