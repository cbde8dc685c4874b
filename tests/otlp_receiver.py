"""A small collector: takes spans and figures by OTLP over HTTP and keeps them."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """One span as it came."""

    trace: str
    id: str
    parent: str
    name: str
    service: str
    about: dict[str, str]


class Collector(ThreadingHTTPServer):
    """Listens on loopback."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taker)
        self.spans: list[ReceivedSpan] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.busy = 0  # how many questions are told to come again
        self.garbled = 0  # how many get an answer that is not HTTP

    @property
    def figures(self) -> set[tuple[str, str]]:
        """The names of all figures that came, with the process that told them."""
        return {
            (service.value.string_value.removeprefix("rushes "), metric.name)
            for message in self.metrics
            for told in message.resource_metrics
            for service in told.resource.attributes
            if service.key == "service.name"
            for metric in told.scope_metrics[0].metrics
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Taker(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        data = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.garbled:
            self.server.garbled -= 1
            self.wfile.write(b"\0\0\x06\x04\0\0\0\0\0\r\n")
            return
        busy, self.server.busy = self.server.busy > 0, max(0, self.server.busy - 1)
        if not busy and self.path == "/v1/metrics":
            self.server.metrics.append(ExportMetricsServiceRequest.FromString(data))
        elif not busy:
            self.server.spans += spans_of(ExportTraceServiceRequest.FromString(data))
        self.send_response(503 if busy else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Nothing."""


def spans_of(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    for resource in request.resource_spans:
        service = next(a.value.string_value for a in resource.resource.attributes if a.key == "service.name")
        for scope in resource.scope_spans:
            for span in scope.spans:
                about = {a.key: a.value.string_value or str(a.value.int_value) for a in span.attributes}
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                yield ReceivedSpan(*ids, span.name, service, about)


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()
