"""Who may call: whoever has the token of the settings; without one all of this machine, until there is an account."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote

import grpc

from rushes.domain.errors import RushesError
from rushes.library.access.accounts import Accounts
from rushes.library.access.throttle import TooManyTries
from rushes.settings import Settings
from rushes.surfaces.http.proxy import FORWARDED, client_of, parse_networks

HEALTH = "/grpc.health.v1.Health/"
# Probes have no token, and learn only that a server runs. Workers have tokens of their own, which their service checks.
_FREE = (HEALTH, "/rushes.v1.WorkerService/")
OPEN_SECONDS = 1.0  # for which it is believed that there is no account
_UNKNOWN, _CLOSED = "authentication required", "gRPC needs a token here. Set RUSHES_TOKEN where rushes serve runs"
Work = Callable[[Any, grpc.ServicerContext], Any]


class Bearer(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Lets in whoever has the token of the settings; without one whoever is on this machine, while that is open."""

    def __init__(self, accounts: Accounts, settings: Settings) -> None:
        self._accounts, self._open_until = accounts, 0.0
        self._needs_token, self._proxies = bool(settings.token), parse_networks(settings.proxy)

    def intercept_service(self, go_on: Callable[[Any], Any], call: Any) -> Any:
        """As grpc asks."""
        handler = go_on(call)
        if handler is None or call.method.startswith(_FREE):
            return handler
        work = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
        return handler_with(handler, partial(self._let_in, work, dict(call.invocation_metadata)))

    def _let_in(self, work: Work, said: Mapping[str, Any], request: Any, context: grpc.ServicerContext) -> Any:
        try:
            no = self._refusal(said, context.peer())
        except TooManyTries as e:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{e}. {e.advice}")
        except RushesError as e:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(e))
        return context.abort(grpc.StatusCode.UNAUTHENTICATED, no) if no else work(request, context)

    def _refusal(self, said: Mapping[str, Any], peer: str) -> str:
        """Why a call does not come in, "" if it does. Raises TooManyTries."""
        if self._needs_token:
            scheme, _, token = str(said.get("authorization", "")).partition(" ")
            known = scheme.lower() == "bearer" and self._accounts.token_caller(token, self._address(said, peer))
            return "" if known else _UNKNOWN
        if any(name in said for name in FORWARDED):  # through a proxy: anybody
            return _CLOSED
        if time.monotonic() >= self._open_until:
            if self._accounts.any:
                return _CLOSED
            self._open_until = time.monotonic() + OPEN_SECONDS
        return ""

    def _address(self, said: Mapping[str, Any], peer: str) -> str:
        """Of `ipv4:10.0.0.1:5555`, or whom a declared proxy names."""
        host = unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]")
        headers = [(b"x-forwarded-for", str(said.get("x-forwarded-for", "")).encode())]
        return client_of({"client": (host, 0), "headers": headers, "scheme": "http"}, self._proxies).address


def handler_with(handler: Any, work: Callable[[Any, grpc.ServicerContext], Any]) -> Any:
    """The handler of the same method, that does something else."""
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    return make(work, handler.request_deserializer, handler.response_serializer)
