"""Google Cloud Storage as its XML interface is documented, as far as a bucket home asks it: no emulator speaks it."""

import contextlib
import hashlib
import itertools
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_CHANGED = "2026-01-01T00:00:00.000Z"


class Storage(ThreadingHTTPServer):
    """Objects with generations; a write may name the one that it expects (0: none)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.objects: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.generations = itertools.count(1_700_000_000_000_001)
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body of each answer waits 40 ms
    server: Storage

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2]

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        labels = {
            name.lower(): value for name, value in self.headers.items() if name.lower().startswith("x-goog-meta-")
        }
        with self.server.lock:
            there = self.server.objects.get(self.key)
            expected = self.headers.get("x-goog-if-generation-match")
            if expected is not None and int(expected) != (there[0] if there else 0):
                return self._say(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            if source := unquote(self.headers.get("x-goog-copy-source", "")).lstrip("/").partition("/")[2]:
                _, data, labels = self.server.objects[source]
            generation = next(self.server.generations)
            self.server.objects[self.key] = (generation, data, labels)
        return self._say(200, b"", {"x-goog-generation": str(generation), "etag": _etag(data)})

    def do_GET(self) -> None:
        if not self.key:
            return self._list(parse_qs(urlsplit(self.path).query).get("prefix", [""])[0])
        found = self.server.objects.get(self.key)
        if not found:
            return self._say(404, b"<Error><Code>NoSuchKey</Code></Error>")
        generation, data, labels = found
        changed = {"last-modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        headers = {"x-goog-generation": str(generation), "etag": _etag(data), **changed, **labels}
        if self.headers.get("if-match", _etag(data)) != _etag(data):
            return self._say(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        if named := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", "")):
            first, last = int(named[1]), min(int(named[2]), len(data) - 1)
            part = {"content-range": f"bytes {first}-{last}/{len(data)}"}
            return self._say(206, data[first : last + 1], headers | part)
        return self._say(200, data, headers)

    do_HEAD = do_GET  # noqa: N815 - as http.server wants it

    def do_DELETE(self) -> None:
        self._say(204 if self.server.objects.pop(self.key, None) else 404, b"")

    def _list(self, prefix: str) -> None:
        found = sorted((key, held) for key, held in self.server.objects.items() if key.startswith(prefix))
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_CHANGED}</LastModified>"
            f"<ETag>{escape(_etag(data))}</ETag><Size>{len(data)}</Size></Contents>"
            for key, (_, data, _) in found
        )
        self._say(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode())

    def _say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


@contextlib.contextmanager
def google_storage() -> Iterator[Storage]:
    """A service that answers until the test is over."""
    with Storage() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
