"""The gRPC server: services of the committed .proto files over the library, with a code for each error.

Beside them grpc.health.v1, which asks for no token, and reflection.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from rushes.domain import errors
from rushes.domain.errors import RushesError
from rushes.library import Library
from rushes.library.access.accounts import Accounts
from rushes.remote.client import HINT
from rushes.remote.generated import events_pb2, jobs_pb2, workers_pb2
from rushes.surfaces.rpc.access import Bearer
from rushes.surfaces.rpc.events import EventsApi
from rushes.surfaces.rpc.jobs import JobsApi
from rushes.surfaces.rpc.limits import CallLimit
from rushes.surfaces.rpc.recording import Recorder
from rushes.surfaces.rpc.tls import server_credentials
from rushes.surfaces.rpc.workers import WorkersApi
from rushes.telemetry import log

MOST_CALLS = 1024  # with probes and those that are refused
MESSAGE_BYTES = 4 * 2**20  # that somebody sends
ANSWER_BYTES = 64 * 2**20  # the lease of a join names all its inputs
OPTIONS = {
    "grpc.max_receive_message_length": MESSAGE_BYTES,
    "grpc.max_send_message_length": ANSWER_BYTES,
    "grpc.so_reuseport": 0,
    "grpc.keepalive_time_ms": 60_000,  # else a caller that vanished holds its stream for hours
    "grpc.http2.max_pings_without_data": 0,  # also while nothing happens
    "grpc.http2.min_ping_interval_without_data_ms": 10_000,  # callers may ask as well
}
STATUS = {  # the first that fits, so the finer ones stand first
    errors.StaleToken: grpc.StatusCode.FAILED_PRECONDITION,
    errors.LeaseLost: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NeverWorks: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NoRoom: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
    errors.Refused: grpc.StatusCode.INVALID_ARGUMENT,
    errors.Throttled: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.TryAgain: grpc.StatusCode.UNAVAILABLE,
}
Call = Callable[[Any, grpc.ServicerContext], Any]


class RpcServer:
    """A server that listens once it is started."""

    def __init__(self, library: Library, address: str) -> None:
        """With a certificate in the settings it speaks TLS alone.

        Raises:
            Refused: the certificate cannot be read, or the address cannot be listened on.
        """
        at_once = CallLimit()
        self._server = grpc.server(
            ThreadPoolExecutor(at_once.threads),
            interceptors=[Recorder(), Bearer(Accounts(library.home), library.settings), at_once],
            options=[*OPTIONS.items()],
            maximum_concurrent_rpcs=MOST_CALLS,
        )
        apis = {
            "JobService": (jobs_pb2, JobsApi(library)),
            "JobEventsService": (events_pb2, EventsApi(library)),
            "WorkerService": (workers_pb2, WorkersApi.of(library)),
        }
        self._server.add_generic_rpc_handlers(
            [service_handler(module, name, api) for name, (module, api) in apis.items()]
        )
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._names = [module.DESCRIPTOR.services_by_name[name].full_name for name, (module, _) in apis.items()]
        reflection.enable_server_reflection([*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME], self._server)
        self.port = self._listen(address, server_credentials(library.settings))

    def start(self) -> None:
        """Listen."""
        self._server.start()
        for name in ("", *self._names):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def stop(self, grace: float | None = None) -> None:
        """Tell that it is over, and end calls after so many seconds."""
        self._health.enter_graceful_shutdown()
        self._server.stop(grace).wait()

    def _listen(self, address: str, credentials: Any) -> int:
        add = self._server.add_secure_port if credentials else self._server.add_insecure_port
        try:
            return int(add(address, *([credentials] if credentials else [])))
        except RuntimeError as e:
            raise errors.Refused(f"cannot listen on {address}", "Choose another port with --grpc.") from e


def service_handler(module: Any, name: str, api: object) -> Any:
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
    if not context.is_active():  # its deadline passed before its turn came: whoever asked does not hear the answer
        return context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the deadline has passed")
    try:
        return call(request, context)
    except Exception as e:  # noqa: BLE001 - told as a fault of ours
        return _refuse(context, e)


def _stream(call: Call, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
    try:
        yield from call(request, context)
    except Exception as e:  # noqa: BLE001 - told as a fault of ours
        _refuse(context, e)


def status_of(error: Exception) -> Any:
    """The gRPC status that an error means; anything that is not ours is a bug."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)


def _refuse(context: grpc.ServicerContext, error: Exception) -> None:
    if not context.is_active():  # whoever asked is gone, which is what ended it
        raise error
    status = status_of(error)
    if status is grpc.StatusCode.INTERNAL:
        log.error("%s", error, exc_info=error)
    if not isinstance(error, RushesError):
        context.abort(status, "internal error; see the log of the server")
        return
    hint = _hint(error)
    context.set_trailing_metadata((("rushes-code", type(error).__name__), (HINT, hint.encode())))
    context.abort(status, f"{error}. {hint}" if hint else str(error))


def _hint(error: RushesError) -> str:
    """What a program can do; other hints are about the command line."""
    if isinstance(error, errors.NotFound):
        return "List jobs with JobService.List." if error.what == "job" else ""
    return "" if error.advice == errors.Refused.hint else error.advice
