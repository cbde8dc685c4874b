"""How many calls run at once: those that wait, or last as long as their caller likes, have bounds of their own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

import grpc

from rushes.surfaces.rpc.access import HEALTH, handler_with

CALLS = 64  # beside these:
LASTING: Mapping[tuple[str, ...], int] = {  # methods that share a bound
    ("JobService/Dequeue",): 64,
    ("JobEventsService/Publish",): 64,
    ("JobEventsService/Stream",): 32,
    ("WorkerService/Renew",): 16,  # short, and 30 s without one cost a lease
    ("WorkerService/ReadBlob", "WorkerService/ReadOriginal", "WorkerService/WriteBlob"): 64,
}
SPARE = 4  # threads for probes, and to refuse


class CallLimit(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Refuses what is too much: neither watchers nor files cost a worker its lease. Probes are always answered."""

    def __init__(self, calls: int = CALLS, lasting: Mapping[tuple[str, ...], int] = LASTING) -> None:
        self.threads = calls + sum(lasting.values()) + SPARE
        self._calls = BoundedSemaphore(calls)
        bounds = [(methods, BoundedSemaphore(n)) for methods, n in lasting.items()]
        self._lasting = {f"/rushes.v1.{method}": turns for methods, turns in bounds for method in methods}

    def intercept_service(self, go_on: Callable[[Any], Any], call: Any) -> Any:
        """As grpc asks."""
        handler = go_on(call)
        if handler is None or call.method.startswith(HEALTH):
            return handler
        turns = self._lasting.get(call.method, self._calls)
        work = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            with _turn(turns, context):
                return work(request, context)

        def stream(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            with _turn(turns, context):
                yield from work(request, context)

        return handler_with(handler, stream if handler.response_streaming else answer)


@contextmanager
def _turn(turns: BoundedSemaphore, context: grpc.ServicerContext) -> Iterator[None]:
    if not turns.acquire(blocking=False):
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls of this kind at once. Try again later")
    try:
        yield
    finally:
        turns.release()
