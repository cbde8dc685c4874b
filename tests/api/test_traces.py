"""Traces: one film is one tree from upload to search; without a collector nothing is imported, and work goes on."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from rushes import tracing
from rushes.domain.task import trace_of, with_trace
from rushes.library import JobRequest, Library
from rushes.library.access.worker_tokens import WorkerTokens
from rushes.metrics import PROCESS, text
from rushes.otlp.collector import TRACES
from rushes.otlp.collector import collector as collector_of
from rushes.remote.generated import events_pb2 as events
from rushes.remote.generated import jobs_pb2 as jobs
from rushes.surfaces.rpc.server import RpcServer
from tests.api.kit import PROGRAM, serving, submit
from tests.otlp_receiver import Collector, ReceivedSpan, collecting
from tests.promql import scraped

TRACE, CLIENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{CLIENT}-01"}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        tracing.start("test")
        yield collector
        tracing.stop()


@pytest.mark.parametrize("remote", [False, True], ids=["with the store", "with a token alone"])
def test_the_traces_of_one_film_form_one_tree_from_upload_to_search(
    collector: Collector, home: Path, film: Path, remote: bool
) -> None:
    with serving(home) as server:
        begun = server.http.post(
            "/api/v1/uploads",
            headers={**HEADERS, "Tus-Resumable": "1.0.0", "Upload-Length": str(film.stat().st_size),
                     "Upload-Metadata": "filename ZmlsbS5tcDQ=,recipe dGV4dA=="},
        )  # fmt: skip
        assert begun.status_code == 201, begun.text
        sent = server.http.patch(
            begun.headers["location"],
            content=film.read_bytes(),
            headers={**HEADERS, "Tus-Resumable": "1.0.0", "Upload-Offset": "0",
                     "Content-Type": "application/offset+octet-stream"},
        )  # fmt: skip
        assert sent.status_code in (200, 204), sent.text
        if remote:
            work_without_credentials(server.library)
        else:
            work_once(home)
        assert [job.state for job in server.library.jobs.page().rows] == ["completed"]
        assert server.http.get("/api/v1/search?q=anything", headers=HEADERS).status_code == 200
    tracing.stop()  # once the server is gone: a request is over after its answer
    spans = tree(collector)
    names = {span.name for span in spans}
    assert remote == ({"gRPC WorkerService/WriteBlob", "gRPC WorkerService/CreateManifest"} <= names)
    assert names >= {"HTTP POST", "HTTP PATCH", "HTTP GET", "job.submit", "ledger.submit", "task probe", "stage probe",
                     "task develop", "task playlist", "ledger.complete", "blobs.put", "blobs.commit"}  # fmt: skip
    submit = next(span for span in spans if span.name == "job.submit")
    tasks = [span for span in spans if span.name.startswith("task ")]
    assert {span.parent for span in tasks} == {submit.id}
    assert {span.about["rushes.job"] for span in tasks} == {submit.about["rushes.job"]}
    assert {span.service for span in tasks} == {"rushes worker"}
    inside = {span.parent for span in spans if span.name in ("blobs.put", "blobs.commit", "ledger.complete")}
    assert inside <= {span.id for span in tasks}
    asked = {span.id for span in spans if span.about.get("rushes.path") == "/api/v1/search"}
    assert [span for span in spans if span.parent in asked], "the search is seen from inside"
    assert {("serve", "rushes.http.requests.total"), ("worker", "rushes.tasks.total")} <= collector.figures


def tree(collector: Collector) -> list[ReceivedSpan]:
    """The spans of the trace, all of them below what the client did."""
    spans = [span for span in collector.spans if span.trace == TRACE]
    known = {span.id for span in spans} | {CLIENT}
    assert [span for span in spans if span.parent not in known] == [], "no branch hangs in the air"
    return spans


def work_without_credentials(library: Library) -> None:
    rpc = RpcServer(library, "127.0.0.1:0")
    rpc.start()
    env = {**os.environ, "RUSHES_WORKER_TOKEN": WorkerTokens(library.home).create("one")}
    argv = [*PROGRAM, "worker", "--server", f"grpc://127.0.0.1:{rpc.port}", "--slots", "2", "--until-idle"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    rpc.stop()
    assert done.returncode == 0, done.stderr


def work_once(home: Path) -> None:
    argv = [*PROGRAM, "--home", str(home), "worker", "--slots", "2", "--until-idle"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_worker_starts_and_works_while_the_collector_is_away(home: Path, film: Path) -> None:
    with Library(home) as library:
        library.add([film], JobRequest(only=("shots",)))
    env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    argv = [*PROGRAM, "--home", str(home), "worker", "--until-idle", "--slots", "2"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "opentelemetry" not in done.stdout + done.stderr
    assert '"outcome": "done"' in done.stdout


def test_off_nothing_of_it_is_imported_and_no_task_carries_a_trace(home: Path, film: Path) -> None:
    code = (
        "import sys\n"
        "from rushes.library import Library\n"
        "from rushes import tracing\n"
        "tracing.start('x')\n"
        f"library = Library({str(home)!r})\n"
        f"job = library.add([{str(film)!r}])[0].job\n"
        "spec = library.home.ledger.tasks(job.id).rows[0].spec\n"
        "print(any(m.startswith('opentelemetry') for m in sys.modules), '\"trace\"' in spec, tracing.is_on())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False False\n"


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, False),
    ],
)
def test_the_usual_variables_decide(env: dict[str, str], wanted: bool) -> None:
    assert (collector_of(TRACES, env) is not None) is wanted


def test_whoever_follows_output_for_hours_makes_no_span_of_each_look(collector: Collector, home: Path) -> None:
    with serving(home, owner="me") as server:
        job = submit(server.ledger, "film", 1)
        assert server.get(f"/api/v1/jobs/{job.id}", headers=HEADERS)["id"] == job.id
        path = f"/api/v1/jobs/{job.id}/output"
        assert server.http.get(path, headers=HEADERS, params={"follow": False}).status_code == 200
    tracing.stop()
    names = [span.name for span in tree(collector)]
    assert {"HTTP GET", "ledger.job"} <= set(names)
    assert "ledger.events" not in names


def test_a_trace_is_no_part_of_the_question() -> None:
    spec = '{"results":{"facts":"key"}}'
    assert with_trace(spec, "") == spec
    assert trace_of(with_trace(spec, HEADERS["traceparent"])) == HEADERS["traceparent"]
    assert trace_of(spec) == ""


def test_a_job_of_a_queue_is_one_tree_over_grpc_and_its_verbs_are_counted(collector: Collector, home: Path) -> None:
    before = counted()
    with Library(home, options={"queues": ("films", "the test")}) as library:
        server = RpcServer(library, "127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            asked = jobs.EnqueueRequest(queue="films", request_id="one", params=b"{}")
            for _ in range(2):  # the second one makes nothing
                job = call(channel, "JobService/Enqueue", asked, jobs.EnqueueResponse, **HEADERS)
            wanted = jobs.DequeueRequest(queue="films", max_jobs=1, visibility_timeout_seconds=60)
            (taken,) = call(channel, "JobService/Dequeue", wanted, jobs.DequeueResponse)
            assert taken.traceparent.split("-")[1] == TRACE, "its worker can go on with it"
            renewal = jobs.UpdateVisibilityRequest(task_token=taken.task_token, visibility_timeout_seconds=60)
            token = call(channel, "JobService/UpdateVisibility", renewal, jobs.UpdateVisibilityResponse).task_token
            told = [events.JobEvent(sequence=n, type="JOB_EVENT_TYPE_OUTPUT_DATA", data=b"x") for n in (1, 2, 3)]
            for one in (token, "forged"):
                publish = events.PublishRequest(task_token=one, events=told)
                with suppress(grpc.RpcError):
                    call(channel, "JobEventsService/Publish", publish, events.PublishResponse)
            finish = jobs.CompleteRequest(task_token=token, job_id=job.job_id)
            for _ in range(2):
                call(channel, "JobService/Complete", finish, jobs.CompleteResponse)
            watch = events.StreamRequest(job_id=job.job_id)
            assert len(list(call(channel, "JobEventsService/Stream", watch, events.StreamResponse))) == 3
        server.stop()
    tracing.stop()
    spans = tree(collector)
    assert {"gRPC JobService/Enqueue", "job.submit", "ledger.submit", "gRPC JobService/UpdateVisibility",
            "gRPC JobService/Complete", "ledger.complete", "events.publish"} <= {one.name for one in spans}  # fmt: skip
    assert [span.about["rushes.events"] for span in spans if span.name == "events.publish"] == ["3"]
    assert {span.trace for span in collector.spans} == {TRACE}, "what nobody asks to be recorded begins no tree"
    now = counted()
    assert {name: now.get(name, 0) - before.get(name, 0) for name in COUNTED} == COUNTED


COUNTED = {
    ("rushes_jobs_enqueued_total", "films"): 1,
    ("rushes_jobs_dequeued_total", "films"): 1,
    ("rushes_jobs_visibility_updates_total",): 1,
    ("rushes_jobs_completed_total", "films", "completed"): 1,
    ("rushes_events_persisted_total",): 3,
    ("rushes_events_publish_total", "true"): 1,
    ("rushes_events_publish_total", "false"): 1,
    ("rushes_events_publish_errors_total", "refused"): 1,
    ("rushes_events_publish_duration_seconds_count",): 1,
    ("rushes_streams_historical_replay_events_total",): 3,
    ("rushes_streams_historical_replay_duration_seconds_count",): 1,
    ("rushes_streams_active", "grpc"): 0,
    ("rushes_rpc_requests_total", "OK", "JobService/Complete"): 2,
    ("rushes_rpc_requests_total", "INVALID_ARGUMENT", "JobEventsService/Publish"): 1,
    ("rushes_rpc_request_seconds_count", "JobService/Dequeue"): 1,
}


def counted() -> dict[tuple[str, ...], float]:
    """What this process has counted, by name and values of labels."""
    found = scraped(text(PROCESS.families()))
    return {
        (name, *(value for key, value in sorted(labels) if key != "instance")): number
        for name, samples in found.items()
        for labels, number in samples.items()
    }


def call(channel: Any, path: str, request: Any, answer: Any, **metadata: str) -> Any:
    """A method of a server as somebody's worker calls it; the answers of a stream."""
    make = {"Dequeue": channel.unary_stream, "Stream": channel.unary_stream, "Publish": channel.stream_unary}
    method = path.partition("/")[2]
    ask = make.get(method, channel.unary_unary)(
        f"/rushes.v1.{path}", type(request).SerializeToString, answer.FromString
    )
    return ask(iter([request]) if method == "Publish" else request, timeout=60, metadata=[*metadata.items()])
