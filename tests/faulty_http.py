"""An HTTP server that passes everything on to another one, except where it was told to spoil an answer."""

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Fault = Callable[["_Passing", "_Answer | None"], None]


class _Answer:
    """What the other server said."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = answer.status, answer.getheaders(), answer.read()


class Way:
    """The way between client and server: `spoil` the next answers to some requests."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream.removeprefix("http://")
        self.seen: list[str] = []
        self._faults: list[tuple[str, str, Fault]] = []
        self._lock = threading.Lock()

    def spoil(self, method: str, part: str, fault: Fault, times: int = 1) -> None:
        """Spoil the next answers to requests with this method and this part in their path."""
        self._faults += [(method, part, fault)] * times

    def fault(self, method: str, path: str) -> Fault | None:
        """The fault that is due, used up by this."""
        with self._lock:
            self.seen.append(f"{method} {path}")
            for n, (of, part, fault) in enumerate(self._faults):
                if of == method and part in path:
                    del self._faults[n]
                    return fault
        return None


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body of each answer waits 40 ms
    way: Way

    def pass_on(self, body: bytes) -> _Answer:
        with contextlib.closing(http.client.HTTPConnection(self.way.upstream, timeout=30)) as line:
            line.request(self.command, self.path, body, dict(self.headers))
            return _Answer(line.getresponse())

    def reply(self, status: int, headers: list[tuple[str, str]], body: bytes, length: int | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        said = {name.lower(): value for name, value in headers}.get("content-length")
        size = said if self.command == "HEAD" and said else str(len(body) if length is None else length)
        self.send_header("content-length", size)
        self.end_headers()
        self.wfile.write(body)

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        fault = self.way.fault(self.command, self.path)
        if fault in _BEFORE:
            return fault(self, None)
        answer = self.pass_on(body)
        if fault:
            return fault(self, answer)
        return self.reply(answer.status, answer.headers, answer.body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = serve  # noqa: N815 - as http.server wants them

    def log_message(self, *_: object) -> None:
        pass


def slow_down(line: _Passing, _answer: _Answer | None) -> None:
    """503, as S3 says when it is busy; nothing was done."""
    line.reply(503, [], b"<Error><Code>SlowDown</Code></Error>")


def conflict(line: _Passing, _answer: _Answer | None) -> None:
    """409, as S3 says when two conditional writes meet; nothing was done."""
    line.reply(409, [], b"<Error><Code>ConditionalRequestConflict</Code></Error>")


def expired(line: _Passing, _answer: _Answer | None) -> None:
    """403: the credentials are no longer good; nothing was done."""
    line.reply(403, [], b"<Error><Code>ExpiredToken</Code></Error>")


def lost(line: _Passing, _answer: _Answer | None) -> None:
    """It was done, and nobody hears of it."""
    line.close_connection = True


def short(line: _Passing, answer: _Answer | None) -> None:
    """Half of the body, then the end."""
    assert answer
    line.reply(answer.status, answer.headers, answer.body[: len(answer.body) // 2], len(answer.body))
    line.close_connection = True


def stalled(line: _Passing, _answer: _Answer | None) -> None:
    """Nothing for a second, then the end."""
    threading.Event().wait(1.0)
    line.close_connection = True


def flipped(line: _Passing, answer: _Answer | None) -> None:
    """One bit of the body is another."""
    assert answer
    body = bytearray(answer.body)
    body[len(body) // 2] ^= 1
    line.reply(answer.status, answer.headers, bytes(body))


_BEFORE = (slow_down, conflict, expired)


@contextlib.contextmanager
def way_to(upstream: str) -> Iterator[tuple[Way, str]]:
    """A way to another server, and its URL."""
    way = Way(upstream)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Passing", (_Passing,), {"way": way}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield way, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
