"""What is counted and recorded of each call: how it ended, how long it took, and its span in the tree of its job."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import grpc

from rushes import tracing
from rushes.library.access.task_tokens import trace_in
from rushes.metrics import PROCESS
from rushes.surfaces.rpc.access import HEALTH, handler_with

_BEGINS = "JobService/Enqueue"


class Recorder(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Counts every call of our services, also one that is refused; nobody knows a method that is none."""

    def intercept_service(self, go_on: Callable[[Any], Any], call: Any) -> Any:
        """As grpc asks."""
        handler = go_on(call)
        if handler is None or not call.method.startswith("/rushes.") or call.method.startswith(HEALTH):
            return handler
        name, parent = call.method.rpartition(".")[2], _parent(call)
        work = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            with _counted(name, context), _recorded(name, parent, request):
                return work(request, context)

        def stream(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            with _counted(name, context):  # of a stream no span: between two answers the thread does other things
                yield from work(request, context)

        return handler_with(handler, stream if handler.response_streaming else answer)


@contextmanager
def _counted(name: str, context: grpc.ServicerContext) -> Iterator[None]:
    begun = time.monotonic()
    try:
        yield
    finally:
        code = context.code() or (grpc.StatusCode.OK if context.is_active() else grpc.StatusCode.CANCELLED)
        PROCESS.add("rushes_rpc_requests_total", method=name, code=code.name)
        PROCESS.observe("rushes_rpc_request_seconds", time.monotonic() - begun, method=name)


def _parent(call: Any) -> str:
    return str(dict(call.invocation_metadata).get(tracing.HEADER, "")) if tracing.is_on() else ""


def _recorded(name: str, parent: str, request: Any) -> AbstractContextManager[None]:
    """Below what the caller does, or in the tree of the job that its token is about; only a new job begins a tree."""
    above = parent or (trace_in(getattr(request, "task_token", "")) if tracing.is_on() else "")
    return tracing.span(f"gRPC {name}", above, kind="server") if above or name == _BEGINS else nullcontext()
