"""The output of attempts over SSE: of workers of custom queues, and of the slots that process videos."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from rushes.library.created_range import parse_time
from rushes.library.job_events import EventFilter, EventWatch, WorkEvent, WorkEventType, millis, next_pause, read_place
from rushes.library.job_events import watch as watch_job
from rushes.surfaces.api.events import HEADERS, STILL_HERE, LastId
from rushes.surfaces.api.jobs import After, Since
from rushes.surfaces.http.bodies import TooManyAtOnce
from rushes.surfaces.http.deps import Id, LibraryDep
from rushes.surfaces.http.event_hub import LOOK_SECONDS, EventHub
from rushes.tracing import apart

router = APIRouter(tags=["events"])
MOST = 64  # at once, of a server: each looks for itself
QUIET_LOOKS = 15  # after so many without news the stream says that it is there
Kinds = Annotated[list[WorkEventType] | None, Query(max_length=len(WorkEventType), description="only these")]


@router.get("/jobs/{job_id}/output", response_class=StreamingResponse)
async def follow_output(
    request: Request,
    library: LibraryDep,
    job_id: Id,
    from_sequence: After = 0,
    from_attempt: After = 0,
    types: Kinds = None,
    since: Since = "",
    follow: bool = True,
    last_event_id: LastId = "",
) -> Response:
    """Stream start, output, and end or error of a job's attempts: from a number on, then live until the job is final.

    Of a job in a queue of your own the latest attempt, by its worker's numbers; of footage every attempt, by the
    number that its outcome has in the history. `text` is what `data` (base64) says as UTF-8.
    """
    hub: EventHub = request.app.state.hub
    if hub.watches >= MOST:
        raise TooManyAtOnce(f"{MOST} outputs are being followed already", "Try again later, or ask another server.")
    attempt, sequence = read_place(last_event_id) if last_event_id else (from_attempt, from_sequence)
    at = parse_time(since)
    wanted = EventFilter(millis(at) if at else 0, types or ())
    hub.watches += 1
    try:
        found = await run_sync(watch_job, library.home, job_id, sequence, wanted, attempt)
    except BaseException:
        hub.watches -= 1
        raise
    return _Watching(hub, _stream(hub, found, follow=follow))


class _Watching(StreamingResponse):
    """Counted until it is over, also if nobody is there to read it."""

    def __init__(self, hub: EventHub, text: AsyncIterator[str]) -> None:
        super().__init__(text, 200, HEADERS, "text/event-stream")
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._hub.watches -= 1


async def _stream(hub: EventHub, found: EventWatch, *, follow: bool) -> AsyncIterator[str]:
    pause, quiet = LOOK_SECONDS, 0
    yield "retry: 2000\n\n"
    while not hub.closing:
        told = await run_sync(_look, found)
        quiet = 0 if told else quiet + 1
        yield "".join(map(_text, told)) or (STILL_HERE if quiet % QUIET_LOOKS == 0 else "")
        if found.over or not (follow or found.more):
            yield "event: end\ndata: {}\n\n"
            return
        pause = next_pause(pause, news=bool(told))
        await asyncio.sleep(0.0 if found.more else pause)


def _look(found: EventWatch) -> list[WorkEvent]:
    with apart():  # one of thousands
        return list(found.look())


def _text(event: WorkEvent) -> str:
    told = {
        "sequence": event.sequence, "timestamp": event.timestamp, "attempt": event.attempt, "task": event.task,
        "number": event.number, "truncated_before": event.before, "text": event.data.decode("utf-8", "replace"),
        "data": base64.b64encode(event.data).decode("ascii"),
    }  # fmt: skip
    place = f"id: {event.place}\n" if event.place else ""
    return f"{place}event: {event.type.value}\ndata: {json.dumps(told)}\n\n"
