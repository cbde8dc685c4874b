"""Deliveries of the webhook: what was sent, and how it was answered."""

from fastapi import APIRouter, Request

from rushes.library.webhook import DELIVERY, Webhook
from rushes.surfaces.http.pagination import Cursor, Limit, Page, page, unseal
from rushes.surfaces.http.schemas import RecordShape

router = APIRouter(tags=["webhook"])


@router.get("/webhook/deliveries")
def list_deliveries(request: Request, cursor: Cursor = "", limit: Limit = 50) -> Page[RecordShape]:
    """What the webhook was told, and how it answered."""
    webhook: Webhook = request.app.state.webhook
    rows, more = webhook.deliveries(unseal(cursor, DELIVERY), limit)
    return page(request, [RecordShape.of(r) for r in rows], more, DELIVERY)
