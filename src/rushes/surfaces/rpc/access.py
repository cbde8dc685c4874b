"""Who may call: whoever has the token of the settings."""

import hmac
from collections.abc import Callable
from typing import Any

import grpc

HEALTH = "/grpc.health.v1.Health/"
# Probes have no token, and learn only that a server runs. Workers have tokens of their own, which their service checks.
_FREE = (HEALTH, "/rushes.v1.WorkerService/")


class Bearer(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Lets in whoever has the token of the settings; without one everybody, who can only be on this machine."""

    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode() if token else b""

    def intercept_service(self, go_on: Callable[[Any], Any], call: Any) -> Any:
        """As grpc asks."""
        if not self._wanted or call.method.startswith(_FREE) or self._has_token(call):
            return go_on(call)
        handler = go_on(call)
        return handler_with(handler, _refuse) if handler else None

    def _has_token(self, call: Any) -> bool:
        told = dict(call.invocation_metadata).get("authorization", "")
        return hmac.compare_digest(str(told).encode("utf-8", "replace"), self._wanted)


def _refuse(_request: Any, context: grpc.ServicerContext) -> None:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "authentication required")


def handler_with(handler: Any, work: Callable[[Any, grpc.ServicerContext], Any]) -> Any:
    """The handler of the same method, that does something else."""
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    return make(work, handler.request_deserializer, handler.response_serializer)
