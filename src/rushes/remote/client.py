"""The connection of a worker without credentials to its server: calls, their errors as ours, and the task tokens."""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc

from rushes.domain import errors
from rushes.domain.errors import LeaseLost, NotAllowed, Refused, RushesError, StaleToken, StoreAway
from rushes.remote.generated import workers_pb2 as pb
from rushes.tracing import HEADER, current

SCHEMES = ("grpcs://", "grpc://")
CALL_SECONDS = 20.0  # shorter than a lease: a call that hangs must not lose it
FILE_SECONDS = 600.0
PATIENCE_SECONDS = 60.0  # for which a file is asked for again: a server that restarts loses no work in hand
CHUNK_BYTES = 1 << 20
TOKENS = 4096  # that are remembered: of far more leases than a process holds
LARGEST = 64 << 20  # bytes of a message; the spec of a join names all its inputs
_SERVICE = pb.DESCRIPTOR.services_by_name["WorkerService"]
HINT = "rushes-hint-bin"  # the trailer with what to do about an error, as UTF-8
_UNREACHED = "Check the address, TLS (grpcs:// or grpc://, grpc_ca), and that rushes serve --grpc runs there."
_AWAY = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL", "RESOURCE_EXHAUSTED")
_OPTIONS = [
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.max_send_message_length", LARGEST),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 30_000),
]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where servers are reached, with what, and by whose certificates."""

    url: str  # grpcs://host:port, several hosts comma separated
    token: str
    ca: str = ""
    cert: str = ""
    key: str = ""

    def channels(self) -> list[Any]:
        """A connection to each server, that is made again by itself.

        Raises:
            Refused: the address or a file cannot be read.
        """
        scheme, _, rest = self.url.partition("://")
        hosts = [host for part in rest.split(",") if (host := part.removeprefix(f"{scheme}://").strip("/ "))]
        if f"{scheme}://" not in SCHEMES or not hosts or not all(host.rpartition(":")[2].isdigit() for host in hosts):
            raise Refused(f"{self.url!r} is not the address of a server", "Write it as grpcs://host:port.")
        if scheme == "grpc":
            return [grpc.insecure_channel(host, _OPTIONS) for host in hosts]
        credentials = self._credentials()
        return [grpc.secure_channel(host, credentials, _OPTIONS) for host in hosts]

    def _credentials(self) -> Any:
        files = [_read(path) for path in (self.ca, self.key, self.cert)]
        return grpc.ssl_channel_credentials(*files)


def _read(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes() if path else None
    except OSError as e:
        raise Refused(f"{path}: {e.strerror}", "Check grpc_ca, grpc_cert and grpc_key.") from e


class RemoteServer:
    """Calls of WorkerService, with the worker's token, to one server until it is away; used from several threads."""

    def __init__(self, address: ServerAddress) -> None:
        """Raises Refused: there is no token, or the address cannot be read."""
        if not address.token.isascii() or not address.token.isprintable():
            raise Refused("this is not a worker token", "Copy all of it, as printed by rushes tokens worker NAME.")
        if not address.token:
            raise Refused("a worker token is needed", "Set RUSHES_WORKER_TOKEN; make one: rushes tokens worker NAME")
        self._metadata = (("authorization", f"Bearer {address.token}"),)
        self._channels = address.channels()
        self._methods = [_methods(channel) for channel in self._channels]
        self._at = secrets.randbelow(len(self._methods))  # many workers ask several servers
        self._tokens: OrderedDict[tuple[str, int], str] = OrderedDict()
        self._lock = threading.Lock()

    def keep_token(self, task: str, fence: int, token: str) -> None:
        """Remember the token of a lease; the one that was not asked for the longest is forgotten."""
        with self._lock:
            self._tokens[task, fence] = token
            if len(self._tokens) > TOKENS:
                self._tokens.popitem(last=False)

    def token(self, task: str, fence: int) -> str:
        """The token of a lease that this process was given, "" if it was not."""
        with self._lock:
            if (task, fence) not in self._tokens:
                return ""
            self._tokens.move_to_end((task, fence))  # what is held is asked for with each renewal
            return self._tokens[task, fence]

    def call(self, method: str, request: Any, seconds: float = CALL_SECONDS) -> Any:
        """The answer to one question.

        Raises:
            StoreAway: the server does not answer.
            NotAllowed: it does not take the worker's token.
            RushesError: what failed there.
        """
        at = self._at
        try:
            return self.call_once(method, request, seconds)
        except StoreAway:
            if self._at == at:
                raise
            return self.call_once(method, request, seconds)  # of the next server

    def call_once(self, method: str, request: Any, seconds: float = CALL_SECONDS) -> Any:
        """The answer of one server, for what must not be done twice unseen. Raises as `call`."""
        with self._asking() as methods:
            return methods[method](request, timeout=seconds, metadata=self._about())

    def begin(self, method: str, request: Any, seconds: float) -> Any:
        """The same as something to wait for, and to cancel."""
        return self._methods[self._at][method].future(request, timeout=seconds, metadata=self._about())

    def read(self, method: str, request: Any) -> Iterator[Any]:
        """The parts of an answer. Raises as `call`, while they are read as well."""
        with self._asking() as methods:
            yield from methods[method](request, timeout=FILE_SECONDS, metadata=self._about())

    def write(self, method: str, requests: Iterable[Any]) -> Any:
        """The answer to something that is sent in parts. Raises as `call`."""
        with self._asking() as methods:
            return methods[method](iter(requests), timeout=FILE_SECONDS, metadata=self._about())

    def close(self) -> None:
        """Close the connections."""
        for channel in self._channels:
            channel.close()

    @contextmanager
    def _asking(self) -> Iterator[dict[str, Any]]:
        """The methods of a server; their errors as ours, and the next server if it is away."""
        at = self._at
        try:
            yield self._methods[at]
        except grpc.RpcError as e:
            error = error_of(e)
            if isinstance(error, StoreAway) and self._at == at:
                self._at = (at + 1) % len(self._methods)
            raise error from e

    def _about(self) -> tuple[tuple[str, str], ...]:
        trace = current()
        return (*self._metadata, (HEADER, trace)) if trace else self._metadata


def _methods(channel: Any) -> dict[str, Any]:
    """The methods of the service, by name."""
    make = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, False): channel.stream_unary,
    }
    return {
        method.name: make[method.client_streaming, method.server_streaming](
            f"/{_SERVICE.full_name}/{method.name}",
            getattr(pb, method.input_type.name).SerializeToString,
            getattr(pb, method.output_type.name).FromString,
        )
        for method in _SERVICE.methods
    }


def patiently(ask: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """Ask again while the server is away, for so long. Raises as `RemoteServer.call`."""
    end, pause = time.monotonic() + seconds, 0.2
    while True:
        try:
            return ask()
        except StoreAway:
            if time.monotonic() >= end:
                raise
            time.sleep(pause)
            pause = min(2.0, 2 * pause)


def error_of(error: Any) -> RushesError:
    """The error of ours that a refusal means."""
    code, text = error.code().name, str(error.details() or "no details")
    trailers = dict(error.trailing_metadata() or ())
    named, hint = str(trailers.get("rushes-code", "")), trailers.get(HINT, b"").decode("utf-8", "replace")
    text = text.removesuffix(f". {hint}") if hint else text
    if named == StaleToken.__name__:
        return LeaseLost(text)
    kind = getattr(errors, named, None)
    if isinstance(kind, type) and issubclass(kind, RushesError):
        return kind(text, hint)
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return NotAllowed(text, "Check RUSHES_WORKER_TOKEN; make a new one: rushes tokens worker NAME")
    if code in _AWAY:
        return StoreAway(f"the server does not answer: {text}", _UNREACHED)
    return RushesError(f"{code}: {text}")
