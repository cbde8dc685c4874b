"""Inference services over HTTP: a few connections that are kept, and another service where one does not answer."""

import contextlib
import http.client
import json
import math
import threading
import time
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from rushes.domain import errors
from rushes.domain.errors import EngineAway, InferenceFailed, NeverWorks, RushesError
from rushes.engines.wire import LARGEST
from rushes.telemetry import log
from rushes.tracing import HEADER, current

AWAY_SECONDS = 10.0  # that a service which did not answer is asked last
CONNECT_SECONDS = 10.0  # that a service may take to accept a connection: how long it works is another question
_BUSY = (429, 503)
_AWAY = (502, 504)  # said by a proxy
_ELSEWHERE = "ModelMissing"  # what a service says that has another model
_LONGEST_WAIT = 30.0  # between two questions to services that are all busy
_UNKNOWN = 401
_BROKEN = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: bytes
    retry_after: float


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """What a service says of itself: healthy, degraded or unhealthy, and its models."""

    status: str
    models: tuple[str, ...]


def ask_health(url: str, token: str = "") -> ServiceHealth:
    """How a service is.

    Raises:
        EngineAway: it does not respond, is no inference service, or does not know the token.
    """
    try:
        status, body = _get(f"{url.rstrip('/')}/health", token)
        doc = json.loads(body)
        found = ServiceHealth(str(doc["status"]), tuple(map(str, doc["models_loaded"])))
        closed, _ = _get(f"{url.rstrip('/')}/metrics", token)
    except _BROKEN as e:
        raise EngineAway(f"no response: {str(e) or type(e).__name__}") from e
    except (ValueError, KeyError, TypeError) as e:
        raise EngineAway(f"this is no inference service: it answered {status}") from e
    if closed == _UNKNOWN:
        raise EngineAway("refuses the token", "Set the same inference_token (RUSHES_INFERENCE_TOKEN) here and there.")
    return found


class InferenceServices:
    """The services that answer for some stages, for all slots of a worker."""

    def __init__(self, urls: Sequence[str], token: str = "", seconds: float = 600.0, in_flight: int = 5) -> None:
        """Each question may take so many seconds; no more than `in_flight` are asked at the same time."""
        self.urls, self.token, self.seconds = tuple(urls), token, seconds
        self.in_flight = threading.BoundedSemaphore(max(1, in_flight))
        self._away: dict[str, float] = {}
        self._sessions = 0

    def session(self) -> "InferenceSession":
        """Connections for one caller; callers begin with different services."""
        self._sessions += 1
        first = self._sessions % len(self.urls)
        return InferenceSession(self, self.urls[first:] + self.urls[:first])

    def in_order(self, preferred: Sequence[str]) -> list[str]:
        """Those that answered last time before those that did not."""
        now = time.monotonic()
        return sorted(preferred, key=lambda url: self._away.get(url, 0.0) > now)

    def mark(self, url: str, *, away: bool) -> None:
        """Remember whether a service answered."""
        if away:
            self._away[url] = time.monotonic() + AWAY_SECONDS
        else:
            self._away.pop(url, None)


class InferenceSession:
    """Asks for one caller, one question at a time; `close` from another thread ends the question."""

    def __init__(self, services: InferenceServices, preferred: Sequence[str]) -> None:
        self._services, self._preferred = services, preferred
        self._connections: dict[str, http.client.HTTPConnection] = {}
        self._closed = threading.Event()

    def post(self, capability: str, call: bytes) -> bytes:
        """The answer of the first service that has one.

        A service that has not this model, or does not know us, leaves the question to the others.

        Raises:
            EngineAway: none answers; this is no fault of the call.
            InferenceFailed: the model failed of this call.
            RushesError: the service refuses the call.
        """
        give_up = time.monotonic() + self._services.seconds
        said: dict[str, RushesError] = {}  # by those who need not be asked again
        with self._services.in_flight:
            while True:
                waits = []
                for url, reply in self._replies(capability, call, said):
                    if reply.status == 200:
                        return reply.body
                    if reply.status in _BUSY:
                        waits.append(reply.retry_after)
                    else:
                        said[url] = _error(url, reply)
                if not waits or time.monotonic() + min(waits) > give_up:
                    raise _worst(said.values(), self._preferred)
                self._closed.wait(min(*waits, _LONGEST_WAIT))

    def close(self) -> None:
        """Hang up; a question that is under way fails."""
        self._closed.set()
        for connection in list(self._connections.values()):
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(2)
            connection.close()

    def _replies(self, capability: str, call: bytes, but: Container[str]) -> Iterator[tuple[str, _Reply]]:
        for url in (url for url in self._services.in_order(self._preferred) if url not in but):
            try:
                if self._closed.is_set():
                    raise ConnectionAbortedError
                reply = self._ask(url, capability, call)
                if reply.status in _AWAY:
                    raise ConnectionError(f"a proxy answered {reply.status}")
            except _BROKEN as e:
                self._drop(url)
                if self._closed.is_set():
                    raise EngineAway("the request was cancelled") from e
                log.warning("inference service %s does not respond: %s", url, str(e) or type(e).__name__)
                self._services.mark(url, away=True)
                continue
            self._services.mark(url, away=reply.status not in (200, 400, *_BUSY))
            yield url, reply

    def _ask(self, url: str, capability: str, call: bytes) -> _Reply:
        """Ask, once more if a connection that was kept has been closed by the other side meanwhile."""
        kept = url in self._connections
        try:
            return self._once(url, capability, call)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            if not kept or self._closed.is_set():
                raise
            self._drop(url)
            return self._once(url, capability, call)

    def _once(self, url: str, capability: str, call: bytes) -> _Reply:
        place, connection = urlsplit(url), self._connection(url)
        headers = {"Content-Type": "application/octet-stream", **_authorization(self._services.token)}
        if trace := current():
            headers[HEADER] = trace
        connection.request("POST", f"{place.path.rstrip('/')}/v1/{capability}", call, headers)
        response = connection.getresponse()
        body = response.read(LARGEST + 1)
        if len(body) > LARGEST or response.length:
            raise http.client.IncompleteRead(body)
        if response.will_close:
            self._drop(url)
        return _Reply(response.status, body, _seconds(response.getheader("Retry-After")))

    def _connection(self, url: str) -> http.client.HTTPConnection:
        """The connection that was kept, or a new one."""
        if url not in self._connections:
            connection = self._connections[url] = _connection(urlsplit(url))
            connection.connect()
            connection.sock.settimeout(self._services.seconds)
            if self._closed.is_set():  # too early for `close` to find it open
                raise ConnectionAbortedError
        return self._connections[url]

    def _drop(self, url: str) -> None:
        if connection := self._connections.pop(url, None):
            connection.close()


def _connection(place: SplitResult) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    connection = kind(place.hostname or "", place.port, timeout=CONNECT_SECONDS)
    connection.auto_open = 0  # one that was closed meanwhile is not opened again in silence
    return connection


def _get(url: str, token: str) -> tuple[int, bytes]:
    place = urlsplit(url)
    connection = _connection(place)
    try:
        connection.connect()
        connection.request("GET", place.path, headers=_authorization(token))
        response = connection.getresponse()
        return response.status, response.read(LARGEST)
    finally:
        connection.close()


def _authorization(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _seconds(header: str | None) -> float:
    try:
        seconds = float(header or 1)
    except ValueError:
        return 1.0
    return 1.0 if math.isnan(seconds) else min(max(seconds, 0.1), _LONGEST_WAIT)


def _error(url: str, reply: _Reply) -> RushesError:
    """What is to be told of an answer that is none.

    Raises:
        RushesError: the service has the model and refuses the call; what it said, as the error that it had.
    """
    code = str(_problem(reply).get("code"))
    if reply.status >= 500:
        return InferenceFailed(f"{url} answered {reply.status}: {_message(reply)}")
    if reply.status != 400 or code == _ELSEWHERE:
        return EngineAway(f"{url} cannot handle this request: it answered {reply.status}: {_message(reply)}")
    kind = getattr(errors, code, NeverWorks)
    known = isinstance(kind, type) and issubclass(kind, NeverWorks)
    hint = "See the log of the inference service."
    raise (kind if known else NeverWorks)(f"{url} refused: {_message(reply)}", hint)


def _worst(said: Collection[RushesError], urls: Sequence[str]) -> RushesError:
    """The error of a question that nobody answered: a model that failed counts, a service that is away does not."""
    failed = next((error for error in said if isinstance(error, InferenceFailed)), None)
    return failed or next(iter(said), None) or EngineAway(f"no inference service responds: {', '.join(urls)}")


def _message(reply: _Reply) -> str:
    return str(_problem(reply).get("detail") or "no message")[:500]


def _problem(reply: _Reply) -> dict[str, object]:
    try:
        doc = json.loads(reply.body)
    except ValueError:
        return {}
    return doc if isinstance(doc, dict) else {}
