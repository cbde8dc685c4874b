"""Events over SSE: the history of a job from any number on, then live; and the rows of all jobs as they change."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse

from rushes.domain.event import EventType
from rushes.domain.job import FINAL, Job
from rushes.library import Library
from rushes.library.created_range import parse_time
from rushes.surfaces.api.jobs import After, Since, Types
from rushes.surfaces.http.deps import Id, LibraryDep
from rushes.surfaces.http.event_hub import EventHub, Message, Subscriber

router = APIRouter(tags=["events"])
KEEP_ALIVE_SECONDS = 15.0
STILL_HERE = ": still here\n\n"
PAST = 500  # events of the past that are read at once
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
LastId = Annotated[str, Header(alias="Last-Event-ID", max_length=40)]


@router.get("/jobs/{job_id}/events", response_class=StreamingResponse)
async def follow_job(
    request: Request,
    library: LibraryDep,
    job_id: Id,
    after: After = 0,
    types: Types = None,
    since: Since = "",
    last_event_id: LastId = "",
) -> Response:
    """Stream the events of a job after a number, live until it is final; then 204, so that browsers do not reconnect.

    Of some types or all, from a time on. A history that is not whole any more says so, whatever was asked for.
    """
    is_number = last_event_id.isascii() and last_event_id.isdigit()
    seen = max(after, int(last_event_id)) if is_number else after
    job = await run_sync(library.jobs.get, job_id)
    if job.state in FINAL and job.last_event <= seen:
        return Response(status_code=204, headers=HEADERS)
    shown = _Shown(frozenset(types or ()), parse_time(since))
    return StreamingResponse(_job_stream(_hub(request), library, job, seen, shown), 200, HEADERS, "text/event-stream")


@router.get("/events", response_class=StreamingResponse)
async def follow_all(request: Request) -> Response:
    """Stream the row of each job when it changes; a row is the complete state, so nothing is replayed."""
    hub = _hub(request)
    await run_sync(hub.wait_until_current)
    return StreamingResponse(_all_stream(hub), 200, HEADERS, "text/event-stream")


@dataclass(frozen=True, slots=True)
class _Shown:
    """Which events a client wants."""

    types: frozenset[EventType]
    since: str

    def text(self, messages: Iterable[Message]) -> str:
        """As it goes over the wire."""
        return "".join(message.text for message in messages if self._has(message))

    def _has(self, message: Message) -> bool:
        is_wanted = message.at >= self.since and (not self.types or message.type in self.types)
        return is_wanted or message.type == EventType.TRUNCATED


async def _job_stream(hub: EventHub, library: Library, job: Job, seen: int, shown: _Shown) -> AsyncIterator[str]:
    subscriber = hub.listen(job.id, job.last_event)
    try:
        yield "retry: 2000\n\n"
        row = await run_sync(library.jobs.get, job.id)  # what comes after it comes to the subscriber
        begun, count = time.monotonic(), 0
        while seen < row.last_event and (past := await run_sync(library.jobs.events, job.id, seen, PAST)):
            yield shown.text(map(Message.of_event, past))
            seen, count = past[-1].number, count + len(past)
        hub.replayed(count, time.monotonic() - begun)
        yield ": live\n\n"
        perhaps_over = row.state in FINAL
        while not subscriber.closed and not (perhaps_over and await _is_over(library, job.id, seen)):
            messages = unseen(await _receive(subscriber), seen)
            yield shown.text(messages) or STILL_HERE
            seen = messages[-1].number if messages else seen
            perhaps_over = not messages or any(message.last for message in messages)
        if not subscriber.closed:
            yield "event: end\ndata: {}\n\n"
    finally:
        hub.leave(subscriber)


async def _all_stream(hub: EventHub) -> AsyncIterator[str]:
    subscriber = hub.listen("", 0)
    try:
        yield "retry: 2000\n\n: live\n\n"
        while not subscriber.closed:
            yield "".join(message.text for message in await _receive(subscriber)) or STILL_HERE
    finally:
        hub.leave(subscriber)


async def _receive(subscriber: Subscriber) -> Sequence[Message]:
    """The next messages, or none after a time without any."""
    if not subscriber.messages and not subscriber.closed:
        subscriber.news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(subscriber.news.wait(), KEEP_ALIVE_SECONDS)
    return subscriber.take()


def unseen(messages: Sequence[Message], seen: int) -> list[Message]:
    """Each event after a number once: what others who come later have to hear is said to all again."""
    before = accumulate((message.number for message in messages), max, initial=seen)
    return [message for message, last in zip(messages, before, strict=False) if message.number > last]


async def _is_over(library: Library, job: str, seen: int) -> bool:
    row = await run_sync(library.jobs.get, job)
    return row.state in FINAL and row.last_event <= seen


def _hub(request: Request) -> EventHub:
    hub: EventHub = request.app.state.hub
    return hub
