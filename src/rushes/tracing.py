"""Traces: off unless a collector is configured; spans are sent by OTLP in the background.

What happens for a film is one tree: the request that brought it, the job that was made, and every attempt at its tasks.
The W3C context of the job stands in the specs of its tasks, so that whoever leases one goes on with the tree.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import Any, NamedTuple, TypeVar

from rushes.domain.redaction import redact
from rushes.otlp.collector import ENVIRON, TRACES, Environment, collector
from rushes.otlp.span import Attribute, Span
from rushes.otlp.span_queue import SpanQueue

T = TypeVar("T")
HEADER = "traceparent"
FLUSH_SECONDS = 3.0  # that the last spans may take when a process ends
_NOTHING: AbstractContextManager[None] = nullcontext()
_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


class Context(NamedTuple):
    """A place in a tree; what is not sampled is not recorded, and neither is what is below it."""

    trace: str
    span: str
    sampled: bool

    @property
    def header(self) -> str:
        """As W3C writes it."""
        return f"00-{self.trace}-{self.span}-{self.sampled:02x}"


Sampler = Callable[[Context | None, str], bool]
_queue: SpanQueue | None = None  # None: off
_sampler: Sampler
_now: ContextVar[Context | None] = ContextVar("trace", default=None)
_tasks: dict[str, Span] = {}  # attempts that are under way here, by task
_jobs: dict[str, str] = {}  # contexts of jobs that were worked on here lately: hints of their next tasks carry them
_MOST_JOBS = 500


def start(process: str, env: Environment = ENVIRON) -> None:
    """Begin, if that is wanted; a collector that is away is no reason not to work."""
    global _queue, _sampler
    if _queue is None and (to := collector(TRACES, env)):
        _queue, _sampler = SpanQueue(to, process, env), sampler(env)


def stop() -> None:
    """Send what is left, but wait no longer than a few seconds."""
    global _queue
    queue, _queue = _queue, None
    _tasks.clear()
    _jobs.clear()
    if queue is not None:
        queue.stop(FLUSH_SECONDS)


def is_on() -> bool:
    """Whether anything is recorded."""
    return _queue is not None


def span(name: str, parent: str = "", kind: str = "internal", **about: object) -> AbstractContextManager[None]:
    """Record what happens meanwhile, below a context that came from elsewhere, or below what is being recorded."""
    return _NOTHING if _queue is None else _Recorded(name, context_of(parent) or _now.get(), kind, about)


def inner_span(name: str, kind: str = "internal", **about: object) -> AbstractContextManager[None]:
    """The same, but nothing where nothing is being recorded: what workers ask all day begins no trees."""
    if _queue is None or (above := _now.get()) is None or not above.sampled:
        return _NOTHING
    return _Recorded(name, above, kind, about)


@contextmanager
def apart() -> Iterator[None]:
    """Meanwhile nothing is recorded below what is being recorded: it would have no end."""
    token = _now.set(None)
    try:
        yield
    finally:
        _now.reset(token)


def current() -> str:
    """The W3C context of what is being recorded, "" if nothing is."""
    return "" if _queue is None or (context := _now.get()) is None else context.header


def traced(store: T, name: str) -> T:
    """A store that records its verbs while something is being recorded; the store itself where traces are off."""
    return store if _queue is None else _Traced(store, name)  # type: ignore[return-value]  # it has the same verbs


# Attempts: begun and ended by the worker's loop, and gone on with by the threads that serve their slots
def begin_task(id: str, trace: str, about: Mapping[str, object]) -> None:
    """An attempt was leased."""
    parent = context_of(trace) if _queue is not None else None
    if parent and _sampler(parent, parent.trace):
        if len(_jobs) >= _MOST_JOBS:
            _jobs.clear()
        _jobs[id.partition(".")[0]] = trace
        _tasks[id] = _span(f"task {id.split('.')[1]}", parent, about=_plain(about))


def end_task(task: str, phases: Mapping[str, tuple[float, float]], *, failed: str = "", **about: object) -> None:
    """It is over: with what it spent its time on (name -> beginning and end, in seconds since 1970)."""
    one = _tasks.pop(task, None)
    if one is None or _queue is None:
        return
    for name, (begun, ended) in phases.items():
        _queue.add(_span(name, _inside(one), begun=int(begun * 1e9), ended=int(ended * 1e9)))
    one.about |= _plain(about)
    one.failed, one.ended = failed, time.time_ns()
    _queue.add(one)


def of_task(task: str, name: str, **about: object) -> AbstractContextManager[None]:
    """Record a part of an attempt that is under way."""
    if _queue is None or (one := _tasks.get(task)) is None:
        return _NOTHING
    return _Recorded(name, _inside(one), "internal", about)


def of_job(job: str) -> str:
    """The W3C context of a job that was worked on here lately, "" if it is not known."""
    return _jobs.get(job, "")


def context_of(header: str) -> Context | None:
    """What a W3C header says, None if it cannot be read."""
    found = _PARENT.fullmatch(header)
    return Context(found[1], found[2], sampled=bool(int(found[3], 16) & 1)) if found else None


def sampler(env: Environment) -> Sampler:
    """Which spans are recorded, by OTEL_TRACES_SAMPLER; usually as those above them, else all."""
    name = env.get("OTEL_TRACES_SAMPLER") or "parentbased_always_on"
    asks_parent, kind = name.startswith("parentbased_"), name.removeprefix("parentbased_")
    share = {"always_off": 0.0, "traceidratio": _share(env.get("OTEL_TRACES_SAMPLER_ARG", ""))}.get(kind, 1.0)

    def sampled(above: Context | None, trace: str) -> bool:
        return above.sampled if above and asks_parent else int(trace[16:], 16) < share * 2**64

    return sampled


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


class _Recorded:
    """Records one span while it is entered."""

    __slots__ = ("_about", "_above", "_kind", "_name", "_span", "_token")
    _token: Token[Context | None]

    def __init__(self, name: str, above: Context | None, kind: str, about: Mapping[str, object]) -> None:
        self._name, self._above, self._kind, self._about = name, above, kind, about

    def __enter__(self) -> None:
        self._span = one = _span(self._name, self._above, kind=self._kind, about=_plain(self._about))
        self._token = _now.set(Context(one.trace, one.id, _sampler(self._above, one.trace)))

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        context = _now.get()
        _now.reset(self._token)
        if _queue is not None and context and context.sampled:
            self._span.ended = time.time_ns()
            self._span.failed = redact(f"{type(error).__name__}: {error}")[:1000] if error else ""
            _queue.add(self._span)


def _span(name: str, above: Context | None, **more: Any) -> Span:
    trace, parent = (above.trace, above.span) if above else (secrets.token_hex(16), "")
    return Span(trace, secrets.token_hex(8), parent, name, **more)


def _inside(one: Span) -> Context:
    return Context(one.trace, one.id, sampled=True)


def _plain(about: Mapping[str, object]) -> dict[str, Attribute]:
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
