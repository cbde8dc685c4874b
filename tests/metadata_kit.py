"""An EC2 metadata service on loopback, as far as the Spot notice goes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NOTICE = b'{"action": "terminate", "time": "2026-11-16T03:00:00Z"}'


class Metadata(ThreadingHTTPServer):
    """IMDSv2 as its documentation says: no token, no answer; 404 as long as nothing is planned."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.notice: bytes | None = None
        self.lifecycle: bytes | None = None
        self.tokens = 0
        self.asked = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Metadata

    def do_PUT(self) -> None:
        good = self.path == "/latest/api/token" and int(self.headers["X-aws-ec2-metadata-token-ttl-seconds"]) > 0
        self.server.tokens += 1
        self._say(200 if good else 400, f"token {self.server.tokens}".encode())

    def do_GET(self) -> None:
        self.server.asked.set()
        if self.headers["X-aws-ec2-metadata-token"] != f"token {self.server.tokens}":
            self._say(401, b"")
        elif self.path == "/latest/meta-data/spot/instance-action" and self.server.notice is not None:
            self._say(200, self.server.notice)
        elif self.path == "/latest/meta-data/autoscaling/target-lifecycle-state" and self.server.lifecycle is not None:
            self._say(200, self.server.lifecycle)
        else:
            self._say(404, b"")

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def metadata_service() -> Iterator[Metadata]:
    """A service that answers until the test is over."""
    with Metadata() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
