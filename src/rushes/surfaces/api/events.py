"""Events over SSE: a job's history from any number on, then live; and the rows of all jobs as they change."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from itertools import accumulate
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse

from rushes.domain.job import FINAL, Job
from rushes.library.desk import Desk
from rushes.surfaces.api.jobs import After
from rushes.surfaces.http.deps import ADesk, Id
from rushes.surfaces.http.event_hub import Ear, Hub, Word

router = APIRouter(tags=["events"])
KEEP_ALIVE_SECONDS = 15.0
STILL_HERE = ": still here\n\n"
PAST = 500  # events of the past that are read at once
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
        row = await run_sync(desk.job, job.id)  # what comes after it comes to the ear
        while seen < row.last_event and (past := await run_sync(desk.events, job.id, seen, PAST)):
            yield "".join(Word.of_event(event).text for event in past)
            seen = past[-1].number
        yield ": live\n\n"
        perhaps_over = row.state in FINAL
        while not ear.closed and not (perhaps_over and await _is_over(desk, job.id, seen)):
            words = unseen(await _heard(ear), seen)
            yield "".join(word.text for word in words) or STILL_HERE
            seen = words[-1].number if words else seen
            perhaps_over = not words or any(word.last for word in words)
        if not ear.closed:
            yield "event: end\ndata: {}\n\n"
    finally:
        hub.leave(ear)


async def _all_stream(hub: Hub) -> AsyncIterator[str]:
    ear = hub.listen("", 0)
    try:
        yield "retry: 2000\n\n: live\n\n"
        while not ear.closed:
            yield "".join(word.text for word in await _heard(ear)) or STILL_HERE
    finally:
        hub.leave(ear)


async def _heard(ear: Ear) -> Sequence[Word]:
    """What came, or nothing after a while in which nothing did."""
    if not ear.words and not ear.closed:
        ear.news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ear.news.wait(), KEEP_ALIVE_SECONDS)
    return ear.take()


def unseen(words: Sequence[Word], seen: int) -> list[Word]:
    """Each event after a number once: what others who come later have to hear is said to all again."""
    before = accumulate((word.number for word in words), max, initial=seen)
    return [word for word, last in zip(words, before, strict=False) if word.number > last]


async def _is_over(desk: Desk, job: str, seen: int) -> bool:
    row = await run_sync(desk.job, job)
    return row.state in FINAL and row.last_event <= seen


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _hub(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub
