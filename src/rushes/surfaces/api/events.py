"""Events over SSE: a job's history from any number on, then live; and the rows of all jobs as they change."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse

from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Job
from rushes.library.desk import Desk
from rushes.surfaces.api.hub import Ear, Hub
from rushes.surfaces.api.jobs import After
from rushes.surfaces.api.reach import ADesk, Id
from rushes.surfaces.api.shapes import JobShape

router = APIRouter(tags=["events"])
KEEP_ALIVE_SECONDS = 15.0
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
LastId = Annotated[str, Header(alias="Last-Event-ID", max_length=40)]


@router.get("/jobs/{job_id}/events", response_class=StreamingResponse)
async def follow_job(
    request: Request, desk: ADesk, job_id: Id, after: After = 0, last_event_id: LastId = ""
) -> Response:
    """A job's events after a number, live until it is final; then 204, which tells a browser not to come again."""
    seen = max(after, int(last_event_id)) if _is_number(last_event_id) else after
    job = await run_sync(desk.job, job_id)
    if job.state in FINAL and job.last_event <= seen:
        return Response(status_code=204, headers=HEADERS)
    return StreamingResponse(_job_stream(_hub(request), desk, job, seen), 200, HEADERS, "text/event-stream")


@router.get("/events", response_class=StreamingResponse)
async def follow_all(request: Request) -> Response:
    """The row of each job when it changes; a row is the whole truth of its moment, so there is nothing to replay."""
    return StreamingResponse(_all_stream(_hub(request)), 200, HEADERS, "text/event-stream")


async def _job_stream(hub: Hub, desk: Desk, job: Job, seen: int) -> AsyncIterator[str]:
    ear = hub.listen(job.id, job.last_event)
    try:
        yield "retry: 2000\n\n"
        while past := await run_sync(desk.events, job.id, seen, 500):
            for event in past:
                yield message(event)
            seen = past[-1].number
        async for text, seen, perhaps_over in _live(ear, seen):  # noqa: B020 - the stream says how far it is
            yield text
            if perhaps_over and await _is_over(desk, job.id, seen):
                yield "event: end\ndata: {}\n\n"
                return
    finally:
        hub.leave(ear)


async def _live(ear: Ear, seen: int) -> AsyncIterator[tuple[str, int, bool]]:
    """What comes, each event once and in order, and a sign of life where nothing does; and whether to look at the row.

    A row is looked at where it may be final: 200 streams that look after every event are 200 looks per task.
    """
    yield ": live\n\n", seen, True
    while not ear.closed:
        if not await _wait(ear):
            yield ": still here\n\n", seen, True
        while ear.items:
            item = ear.items.popleft()
            if isinstance(item, Event) and item.number > seen:
                seen = item.number
                yield message(item), seen, item.type is EventType.FINISHED


async def _all_stream(hub: Hub) -> AsyncIterator[str]:
    ear = hub.listen("", 0)
    try:
        yield "retry: 2000\n\n: live\n\n"
        while not ear.closed:
            if not await _wait(ear):
                yield ": still here\n\n"
            while ear.items:
                row = ear.items.popleft()
                if isinstance(row, Job):
                    yield f"event: job\ndata: {json.dumps(asdict(JobShape.of(row)))}\n\n"
    finally:
        hub.leave(ear)


async def _wait(ear: Ear) -> bool:
    if ear.items:
        return True
    ear.news.clear()
    if ear.closed:
        return True
    try:
        await asyncio.wait_for(ear.news.wait(), KEEP_ALIVE_SECONDS)
    except TimeoutError:
        return False
    return True


async def _is_over(desk: Desk, job: str, seen: int) -> bool:
    row = await run_sync(desk.job, job)
    return row.state in FINAL and row.last_event <= seen


def message(event: Event) -> str:
    """One event on the wire; JSON has no bare line ends."""
    return f"id: {event.number}\nevent: {event.type.value}\ndata: {json.dumps(asdict(event))}\n\n"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _hub(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub
