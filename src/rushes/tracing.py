"""Traces by OpenTelemetry: off unless a collector is named, and then nothing of it is even imported.

What happens for a film is one tree: the request that brought it, the job that was made, and every attempt at its tasks.
The W3C context of the job stands in the specs of its tasks, so that whoever leases one goes on with the tree.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, TypeVar

from rushes.telemetry import log

T = TypeVar("T")
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
HEADER = "traceparent"
FLUSH_SECONDS = 3.0  # that the last spans may take when a process ends
_NOTHING: AbstractContextManager[None] = nullcontext()
_tracer: Any = None  # None: off
_provider: Any = None
_tasks: dict[str, Any] = {}  # attempts that are under way here, by task


def wanted(env: Mapping[str, str] = MappingProxyType(os.environ)) -> bool:
    """Whether the environment names a collector and does not switch traces off."""
    off = env.get("OTEL_SDK_DISABLED", "").lower() == "true" or env.get("OTEL_TRACES_EXPORTER") == "none"
    return not off and any(env.get(name) for name in ENDPOINTS)


def start(process: str) -> None:
    """Begin, if that is wanted; a collector that is away is no reason not to work."""
    global _tracer, _provider  # noqa: PLW0603 - one for the process, like the log
    if _tracer is not None or not wanted():
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as e:
        log.warning("no traces: %s is not installed; pip install 'rushes[otel]'", e.name)
        return
    logger = logging.getLogger("opentelemetry")  # it says so each time that a collector is away
    logger.propagate, logger.handlers = False, [logging.NullHandler()]
    named = os.environ.get("OTEL_SERVICE_NAME") or f"rushes {process}".strip()
    _provider = TracerProvider(resource=Resource.create({"service.name": named}))
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = _provider.get_tracer("rushes")


def stop() -> None:
    """Send what is left, but wait no longer than a few seconds."""
    global _tracer, _provider
    provider, _tracer, _provider = _provider, None, None
    _tasks.clear()
    if provider is not None:
        provider.force_flush(int(FLUSH_SECONDS * 1000))
        provider.shutdown()


def is_on() -> bool:
    """Whether anything is recorded."""
    return _tracer is not None


def span(name: str, parent: str = "", **about: object) -> AbstractContextManager[None]:
    """Record what happens meanwhile, below what is being recorded, or below a context that came from elsewhere."""
    return _NOTHING if _tracer is None else _recorded(name, _context_of(parent) if parent else None, about)


def inner_span(name: str, **about: object) -> AbstractContextManager[None]:
    """The same, but nothing where nothing is being recorded: what workers ask all day begins no trees."""
    return _NOTHING if _tracer is None or not current() else _recorded(name, None, about)


def current() -> str:
    """The W3C context of what is being recorded, "" if nothing is."""
    if _tracer is None:
        return ""
    from opentelemetry import trace  # noqa: PLC0415

    return _header(trace.get_current_span())


def traced(store: T, name: str) -> T:
    """A store that records its verbs while something is being recorded; the store itself where traces are off."""
    return store if _tracer is None else _Traced(store, name)  # type: ignore[return-value]  # it has the same verbs


# Attempts: begun and ended by the worker's loop, and gone on with by the threads that serve their slots
def begin_task(id: str, trace: str, about: Mapping[str, object]) -> None:
    """An attempt was leased."""
    if _tracer is not None and trace:
        _tasks[id] = _tracer.start_span(f"task {id.split('.')[1]}", _context_of(trace), attributes=_plain(about))


def end_task(task: str, phases: Mapping[str, tuple[float, float]], *, failed: str = "", **about: object) -> None:
    """It is over: with what it spent its time on (name -> beginning and end, in seconds since 1970)."""
    one = _tasks.pop(task, None)
    if one is None or _tracer is None:
        return
    from opentelemetry import trace  # noqa: PLC0415

    for name, (began, ended) in phases.items():
        part = _tracer.start_span(name, trace.set_span_in_context(one), start_time=int(began * 1e9))
        part.end(int(ended * 1e9))
    one.set_attributes(_plain(about))
    if failed:
        one.set_status(trace.StatusCode.ERROR, failed)
    one.end()


def of_task(task: str, name: str, **about: object) -> AbstractContextManager[None]:
    """Record a part of an attempt that is under way."""
    if _tracer is None or task not in _tasks:
        return _NOTHING
    from opentelemetry import trace  # noqa: PLC0415

    return _recorded(name, trace.set_span_in_context(_tasks[task]), about)


@contextmanager
def _recorded(name: str, context: Any, about: Mapping[str, object]) -> Iterator[None]:
    with _tracer.start_as_current_span(name, context, attributes=_plain(about)):
        yield


def _context_of(header: str) -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    return TraceContextTextMapPropagator().extract({HEADER: header})


def _header(one: Any) -> str:
    context = one.get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def _plain(about: Mapping[str, object]) -> dict[str, str | int | float | bool]:
    """Attributes by their full names; what is None is left out."""
    told = {f"rushes.{name}": value for name, value in about.items() if value is not None}
    return {name: value if isinstance(value, str | int | float | bool) else str(value) for name, value in told.items()}


class _Traced:
    """Records each verb of a store."""

    def __init__(self, store: object, name: str) -> None:
        self._store, self._name = store, name

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self._store, verb)
        if verb.startswith("_") or not callable(found):
            return found

        def call(*args: Any, **more: Any) -> Any:
            with inner_span(f"{self._name}.{verb}"):
                return found(*args, **more)

        return call
