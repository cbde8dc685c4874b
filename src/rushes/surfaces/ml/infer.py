"""Questions about films in the terms of the contract: six routes, each with where its answer comes from."""

from typing import TypeVar
from uuid import uuid4

from fastapi import APIRouter, Request

from rushes.domain.keys import JSON, digest
from rushes.library import version
from rushes.library.inference import InferenceService
from rushes.surfaces.ml import schemas as s
from rushes.surfaces.ml.turns import Turns

router = APIRouter(prefix="/infer", tags=["inference"])
Answer = TypeVar("Answer", bound=s.Provenance)


@router.post("/objects", name="detectObjects")
async def objects(request: Request, asked: s.ObjectDetectionRequest) -> s.ObjectDetectionResponse:
    """Detect objects in video."""
    return await _asked(request, "objects", asked, s.ObjectDetectionResponse, asked.model_name)


@router.post("/faces", name="detectFaces")
async def faces(request: Request, asked: s.FaceDetectionRequest) -> s.FaceDetectionResponse:
    """Detect faces in video."""
    return await _asked(request, "faces", asked, s.FaceDetectionResponse, asked.model_name)


@router.post("/transcribe", name="transcribeVideo")
async def transcribe(request: Request, asked: s.TranscriptionRequest) -> s.TranscriptionResponse:
    """Transcribe audio from video."""
    return await _asked(request, "transcribe", asked, s.TranscriptionResponse, asked.model_name)


@router.post("/ocr", name="extractOCR")
async def ocr(request: Request, asked: s.OCRRequest) -> s.OCRResponse:
    """Extract text from video frames."""
    return await _asked(request, "ocr", asked, s.OCRResponse)


@router.post("/places", name="classifyPlaces")
async def places(request: Request, asked: s.PlaceDetectionRequest) -> s.PlaceDetectionResponse:
    """Classify places in video frames."""
    return await _asked(request, "places", asked, s.PlaceDetectionResponse)


@router.post("/scenes", name="detectScenes")
async def scenes(request: Request, asked: s.SceneDetectionRequest) -> s.SceneDetectionResponse:
    """Detect scene boundaries in video."""
    return await _asked(request, "scenes", asked, s.SceneDetectionResponse)


async def _asked(request: Request, what: str, asked: s.FilmRequest, kind: type[Answer], model: str = "") -> Answer:
    service: InferenceService = request.app.state.service
    turns: Turns = request.app.state.turns
    chosen = service.choose(what, model, asked.model_profile)
    doc: dict[str, JSON] = {**asked.model_dump(exclude={"video_path"}), "model": chosen}
    with service.queue.enter():
        films = request.app.state.films
        found = await turns.take(request, lambda check: films.ask(what, asked.video_path, doc, check))
    provenance = {
        "run_id": uuid4(),
        "config_hash": digest(doc)[:16],
        "model_profile": asked.model_profile,
        "producer": f"rushes.{what}",
        "producer_version": version(),
        "model": chosen,
    }
    return kind(**{**provenance, **found})
