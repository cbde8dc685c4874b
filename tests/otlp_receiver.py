"""A small collector: takes spans by OTLP over HTTP and keeps them."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Taker(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        data = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.server.spans += spans_of(ExportTraceServiceRequest.FromString(data))
        self.send_response(200)
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
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()
