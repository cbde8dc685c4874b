"""Who may call: whoever has the token of the settings; without one all of this machine, until there is an account."""

import hmac
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import grpc

from rushes.domain.errors import RushesError
from rushes.library.access.accounts import Accounts

HEALTH = "/grpc.health.v1.Health/"
# Probes have no token, and learn only that a server runs. Workers have tokens of their own, which their service checks.
_FREE = (HEALTH, "/rushes.v1.WorkerService/")
_FORWARDED = {"forwarded", "x-forwarded-for", "x-real-ip"}
OPEN_SECONDS = 1.0  # for which it is believed that there is no account
_CLOSED = "gRPC needs a token here. Set RUSHES_TOKEN where rushes serve runs, and restart it"


class Bearer(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Lets in whoever has the token of the settings; without one whoever is on this machine, while that is open."""

    def __init__(self, token: str, accounts: Accounts) -> None:
        self._wanted = f"Bearer {token}".encode() if token else b""
        self._accounts, self._open_until = accounts, 0.0

    def intercept_service(self, go_on: Callable[[Any], Any], call: Any) -> Any:
        """As grpc asks."""
        handler = go_on(call)
        if handler is None or call.method.startswith(_FREE) or self._has_token(call):
            return handler
        if self._wanted:
            return handler_with(handler, _refuse)
        if any(name in _FORWARDED for name, _ in call.invocation_metadata):  # by a proxy: anybody
            return handler_with(handler, partial(_refuse, why=_CLOSED))
        work = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
        return handler_with(handler, partial(self._let_in, work))

    def _has_token(self, call: Any) -> bool:
        told = dict(call.invocation_metadata).get("authorization", "")
        return bool(self._wanted) and hmac.compare_digest(str(told).encode("utf-8", "replace"), self._wanted)

    def _let_in(self, work: Callable[[Any, Any], Any], request: Any, context: grpc.ServicerContext) -> Any:
        if time.monotonic() >= self._open_until:
            try:
                if self._accounts.any:
                    return _refuse(request, context, _CLOSED)
            except RushesError as e:
                context.abort(grpc.StatusCode.UNAVAILABLE, str(e))
            self._open_until = time.monotonic() + OPEN_SECONDS
        return work(request, context)


def _refuse(_request: Any, context: grpc.ServicerContext, why: str = "authentication required") -> None:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, why)


def handler_with(handler: Any, work: Callable[[Any, grpc.ServicerContext], Any]) -> Any:
    """The handler of the same method, that does something else."""
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    return make(work, handler.request_deserializer, handler.response_serializer)
