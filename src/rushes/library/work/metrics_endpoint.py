"""Where a worker tells that it lives and what it has counted: /healthz and /metrics, and nothing else."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rushes.domain.errors import Refused

TEXT = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = 10.0  # that a connection may be silent


@contextmanager
def serve_metrics(host: str, port: int, metrics: Callable[[], str]) -> Iterator[int]:
    """Answer meanwhile, in threads of their own; gives the port.

    Raises:
        Refused: the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = SECONDS

        def do_GET(self) -> None:
            answers = {"/healthz": lambda: "ok\n", "/metrics": metrics}
            answer = answers.get(self.path.partition("?")[0])
            body = (answer() if answer else "not found\n").encode()
            self.send_response(200 if answer else 404)
            self.send_header("Content-Type", TEXT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """A scrape is not worth a line."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as e:
        raise Refused(f"cannot listen on {host}:{port}: {e.strerror}", "Choose another port with --metrics.") from e
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
