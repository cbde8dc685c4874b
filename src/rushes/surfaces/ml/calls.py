"""Calls of our own workers: what they have decoded already, in binary batches."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response

from rushes.library.inference import InferenceService
from rushes.surfaces.ml.turns import Turns

LARGEST = 64 << 20
BINARY = "application/octet-stream"
Capability = Annotated[
    Literal["hear", "read", "detect", "depth", "embed"], Path(description="what the models are asked for")
]
_BODY: dict[str, Any] = {"content": {BINARY: {"schema": {"type": "string", "format": "binary"}}}, "required": True}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer, in the same form", "content": _BODY["content"]}
}

router = APIRouter(prefix="/v1", tags=["calls"])


@router.post(
    "/{capability}", name="callModels", response_class=Response, openapi_extra={"requestBody": _BODY}, responses=_ANSWER
)
async def call(request: Request, capability: Capability) -> Response:
    """Ask the models about pictures, sound or sentences.

    The body is four bytes (big endian: the length of a JSON document), the document, and binary parts whose lengths its
    field `parts` lists: pictures as JPEG (or pixels, with height and width in `shapes`), sound as 16 kHz mono float32.
    docs/guides/inference.md lists the fields of each capability.
    """
    service: InferenceService = request.app.state.service
    turns: Turns = request.app.state.turns
    with service.queue.enter():
        body = await turns.body(request, LARGEST)
        data = await turns.take(request, lambda check: service.answer(capability, body, check))
    return Response(data, media_type=BINARY)
