"""3D by the calls of SageMaker: a film is read from one address and stored at another."""

from fastapi import APIRouter, Request

from rushes.library.inference import StereoFilms
from rushes.surfaces.ml.schemas import InvocationRequest, InvocationResponse
from rushes.surfaces.ml.turns import Turns

router = APIRouter(tags=["inference"])


@router.post("/invocations", name="makeStereo")
async def make_stereo(request: Request, asked: InvocationRequest) -> InvocationResponse:
    """Make the 3D version of a film."""
    films: StereoFilms = request.app.state.stereo
    turns: Turns = request.app.state.turns
    source, target = asked.addresses()
    with films.queue.enter():
        await turns.take(request, lambda check: films.convert(source, target, asked.mode, check))
    return InvocationResponse(status="completed", output_uri=target)
