"""The gRPC server: services of the committed .proto files over the library, with a code for each error."""

import hmac
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc

from rushes.domain import errors
from rushes.domain.errors import RushesError
from rushes.library import Library
from rushes.surfaces.rpc.events import EventsApi
from rushes.surfaces.rpc.generated import events_pb2, jobs_pb2
from rushes.surfaces.rpc.jobs import JobsApi
from rushes.telemetry import log

THREADS = 64  # streams that are open at once, and calls
MESSAGE_BYTES = 4 * 2**20
STATUS = {  # the first that fits, so the finer ones stand first
    errors.StaleToken: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
    errors.Refused: grpc.StatusCode.INVALID_ARGUMENT,
    errors.Throttled: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.TryAgain: grpc.StatusCode.UNAVAILABLE,
}
Call = Callable[[Any, grpc.ServicerContext], Any]


def create(library: Library, address: str) -> tuple[grpc.Server, int]:
    """A server that listens once it is started, and its port."""
    server = grpc.server(
        ThreadPoolExecutor(THREADS),
        interceptors=[Bearer(library.settings.token)],
        options=[("grpc.max_receive_message_length", MESSAGE_BYTES), ("grpc.so_reuseport", 0)],
    )
    jobs = _service(jobs_pb2, "JobService", JobsApi(library))
    server.add_generic_rpc_handlers((jobs, _service(events_pb2, "JobEventsService", EventsApi(library))))
    return server, int(server.add_insecure_port(address))


class Bearer(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Lets in whoever has the token of the settings; without one everybody, who can only be on this machine."""

    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode() if token else b""

    def intercept_service(self, go_on: Callable[[Any], Any], call: Any) -> Any:
        """As grpc asks."""
        told = dict(call.invocation_metadata).get("authorization", "")
        if not self._wanted or hmac.compare_digest(str(told).encode("utf-8", "replace"), self._wanted):
            return go_on(call)

        def refuse(_request: Any, context: grpc.ServicerContext) -> None:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "authentication required")

        handler = go_on(call)
        if handler is None:
            return None
        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
        }[handler.request_streaming, handler.response_streaming]
        return make(refuse, handler.request_deserializer, handler.response_serializer)


def _service(module: Any, name: str, api: object) -> Any:
    """Handlers of a service as its descriptor says; a method is that of the same name in small letters."""
    service = module.DESCRIPTOR.services_by_name[name]
    handlers = {}
    for method in service.methods:
        call = getattr(api, _small(method.name))
        request = getattr(module, method.input_type.name).FromString
        response = getattr(module, method.output_type.name).SerializeToString
        if method.server_streaming:
            handlers[method.name] = grpc.unary_stream_rpc_method_handler(partial(_stream, call), request, response)
        elif method.client_streaming:
            handlers[method.name] = grpc.stream_unary_rpc_method_handler(partial(_answer, call), request, response)
        else:
            handlers[method.name] = grpc.unary_unary_rpc_method_handler(partial(_answer, call), request, response)
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def _small(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _answer(call: Call, request: Any, context: grpc.ServicerContext) -> Any:
    try:
        return call(request, context)
    except RushesError as e:
        return _refuse(context, e)


def _stream(call: Call, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
    try:
        yield from call(request, context)
    except RushesError as e:
        _refuse(context, e)


def status_of(error: RushesError) -> Any:
    """The gRPC status that an error of ours means."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)


def _refuse(context: grpc.ServicerContext, error: RushesError) -> None:
    status = status_of(error)
    if status is grpc.StatusCode.INTERNAL:
        log.error("%s", error, exc_info=error)
    context.set_trailing_metadata((("rushes-code", type(error).__name__),))
    context.abort(status, f"{error}. {error.advice}")
