"""Storage events over HTTP, for storage without a queue (MinIO, SeaweedFS)."""

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from rushes.library.watching.event_listener import EventListener

router = APIRouter(tags=["storage events"])


@router.post("/storage-events", status_code=204, response_class=Response)
async def receive_storage_events(request: Request) -> Response:
    """Receive a storage event from S3, MinIO, SNS, EventBridge or SeaweedFS; the keys in it are then checked.

    The token `events_token` opens this address and nothing else. 503: a store is away, tell it again.
    """
    listener: EventListener = request.app.state.events
    body = await request.body()  # at most a megabyte, as of every request
    await run_sync(listener.tell, body)
    return Response(status_code=204)
