"""Traces: one film is one tree from upload to search; without a collector nothing is imported, and work goes on."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rushes import tracing
from rushes.domain.task import trace_of, with_trace
from rushes.library import JobRequest, Library
from rushes.otlp.collector import TRACES
from rushes.otlp.collector import collector as collector_of
from tests.api.kit import PROGRAM, serving
from tests.otlp_receiver import Collector, collecting

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


def test_the_traces_of_one_film_form_one_tree_from_upload_to_search(
    collector: Collector, home: Path, film: Path
) -> None:
    with serving(home) as server:
        begun = server.http.post(
            "/api/v1/uploads",
            headers={**HEADERS, "Tus-Resumable": "1.0.0", "Upload-Length": str(film.stat().st_size),
                     "Upload-Metadata": "filename ZmlsbS5tcDQ=,only cHJvYmUscGxheWxpc3Q="},
        )  # fmt: skip
        assert begun.status_code == 201, begun.text
        sent = server.http.patch(
            begun.headers["location"],
            content=film.read_bytes(),
            headers={**HEADERS, "Tus-Resumable": "1.0.0", "Upload-Offset": "0",
                     "Content-Type": "application/offset+octet-stream"},
        )  # fmt: skip
        assert sent.status_code in (200, 204), sent.text
        work_once(home)
        assert [job.state for job in server.library.jobs.page().rows] == ["completed"]
        assert server.http.get("/api/v1/search?q=anything", headers=HEADERS).status_code == 200
        tracing.stop()
    spans = [span for span in collector.spans if span.trace == TRACE]
    known = {span.id for span in spans} | {CLIENT}
    assert [span for span in spans if span.parent not in known] == [], "no branch hangs in the air"
    names = {span.name for span in spans}
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


def test_a_trace_is_no_part_of_the_question() -> None:
    spec = '{"results":{"facts":"key"}}'
    assert with_trace(spec, "") == spec
    assert trace_of(with_trace(spec, HEADERS["traceparent"])) == HEADERS["traceparent"]
    assert trace_of(spec) == ""
