"""An asynchronous endpoint as SageMaker's, on loopback: it asks a real inference service and answers in a bucket.

Like the real one it reads what it is asked from a bucket, posts it to /invocations, and stores what comes back, or what
went wrong, at addresses of its own choice. It tells a queue of what it stored, or not, in the manner it is given.
"""

import json
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle

from rushes.aws.client import Service
from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from tests.inference_service import ask

_HEAD = "X-Amzn-SageMaker-"
DEADLINE = 120.0


class Endpoint(ThreadingHTTPServer):
    """Answers later; `witness` counts what it was asked."""

    daemon_threads = True

    def __init__(self, service: str, bucket: BucketLocation, sqs: Service, queue: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service, self.bucket, self.client = service, bucket, connect(replace(bucket, prefix=""))
        self._sqs, self._queue = sqs, queue
        self.witness: Counter[str] = Counter()  # by what was asked about
        self.ids: list[str] = []
        self.types: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self._manners, self._late = cycle(["told"]), list[str]()
        self.in_flight = self.most_in_flight = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def manners(self, *manners: str) -> None:
        """How it answers, in turn: told, doubled, lost (no event), late (told with the next one), failed."""
        self._manners = cycle(manners)

    def invoke(self, source: str, kind: str, id: str) -> tuple[str, str]:
        """Take a question; where its answer or failure comes."""
        place, name = f"s3://{self.bucket.bucket}/answers", uuid.uuid4().hex
        output, failure = f"{place}/{name}.out", f"{place}/{name}-error.out"
        with self.lock:
            self.witness[source.rpartition("/input/")[2]] += 1
            self.ids.append(id)
            self.types.add(kind)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            manner = next(self._manners)
        threading.Thread(target=self._work, args=(source, kind, manner, output, failure), daemon=True).start()
        return output, failure

    def _work(self, source: str, kind: str, manner: str, output: str, failure: str) -> None:
        assert self.gate.wait(DEADLINE)
        call = bytes(self.client.get(self._key(source)).bytes())
        status, data = ask(self.service, "POST", "/invocations", call, {"Content-Type": kind})
        if manner == "failed":
            status, data = 500, b"the model ran out of memory"
        with self.lock:
            self.in_flight -= 1
        told = output if status == 200 else failure
        text = b'Received server error (%d) from model with message "%s"' % (status, data)
        self.client.put(self._key(told), data if status == 200 else text)
        with self.lock:
            events = {"lost": [], "late": [], "doubled": [told, told]}.get(manner, [told])
            events, self._late = [*events, *self._late], [told] if manner == "late" else []
        for address in events:
            self.tell(address)

    def tell(self, address: str) -> None:
        """Send the storage event of an address."""
        record = {"bucket": {"name": self.bucket.bucket}, "object": {"key": self._key(address), "eTag": "1"}}
        body = json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": record}]})
        self._sqs.ask("send_message", QueueUrl=self._queue, MessageBody=body)

    def _key(self, address: str) -> str:
        return address.removeprefix(f"s3://{self.bucket.bucket}/")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _, endpoints, name, verb = self.path.split("/")
        assert (endpoints, name, verb) == ("endpoints", "films", "async-invocations")
        id, kind = self.headers[f"{_HEAD}Inference-Id"], self.headers[f"{_HEAD}Content-Type"]
        output, failure = self.server.invoke(self.headers[f"{_HEAD}InputLocation"], kind, id)
        body = json.dumps({"InferenceId": id}).encode()
        self.send_response(202)
        for head, value in ((f"{_HEAD}OutputLocation", output), (f"{_HEAD}FailureLocation", failure)):
            self.send_header(head, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def asynchronous_endpoint(service: str, bucket: BucketLocation, sqs: Service, queue: str) -> Iterator[Endpoint]:
    """An endpoint before a service."""
    server = Endpoint(service, bucket, sqs, queue)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.gate.set()
        server.shutdown()
        server.server_close()
