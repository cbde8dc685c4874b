"""Settings of models: where weights are stored, which model is used, and where each stage's models run."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from rushes.domain.errors import Refused
from rushes.domain.redaction import redact_address
from rushes.files import local_path
from rushes.settings import PROFILES, Settings

PICTURES = "pictures"  # the capability, and the stage, of a pair that compares pictures with texts
MODEL_SETTINGS = ("speech", "text", "objects", "faces", "places", "depth", PICTURES)


_BY_PROFILE = re.compile(rf"(?:{'|'.join(PROFILES)})=\S+")


def own_model(settings: Settings, capability: str, profile: str) -> str:
    """What was configured to answer instead of the profile's model; empty if nothing was."""
    found = _by_profile(str(getattr(settings, f"{capability}_model", "")))
    return found.get(profile, found.get("", ""))


def own_models(settings: Settings) -> list[tuple[str, str]]:
    """All models that were configured, each with its capability."""
    found = ((c, model) for c in MODEL_SETTINGS for model in _by_profile(str(getattr(settings, f"{c}_model"))).values())
    return list(dict.fromkeys((c, model) for c, model in found if model))


def _by_profile(said: str) -> Mapping[str, str]:
    """A model for some profiles, as `fast=... balanced=...`, or one for all."""
    parts = said.split()
    if parts and all(_BY_PROFILE.fullmatch(part) for part in parts):
        return dict(part.split("=", 1) for part in parts)
    return {"": said}


LOCAL, STUB, HTTP, SAGEMAKER = "local", "stub", "http", "sagemaker"
_ENDPOINT = re.compile(rf"{SAGEMAKER}:([a-zA-Z0-9](?:-*[a-zA-Z0-9]){{0,62}})")


def inference_of(settings: Settings, stage: str) -> tuple[str, tuple[str, ...]]:
    """Where the models of a stage run: local, stub, http with the addresses of its services, or sagemaker with a name.

    Raises:
        Refused: the setting is invalid.
    """
    said = (
        inference_by_stage(settings).get(stage, "") or settings.inference or (HTTP if settings.inference_url else LOCAL)
    )
    if said in (LOCAL, STUB):
        return said, ()
    if endpoint := _ENDPOINT.fullmatch(said):
        return SAGEMAKER, (endpoint[1],)
    urls = tuple(url.strip() for url in (settings.inference_url if said == HTTP else said).split(",") if url.strip())
    if not urls or not all(map(_is_service, urls)):
        hint = (
            "Allowed: local, stub, http with inference_url, http://host:8001 (several: comma separated), "
            "or sagemaker:ENDPOINT."
        )
        raise Refused(f"inference = {redact_address(said)!r} is invalid", hint)
    return HTTP, urls


def service_urls(settings: Settings) -> tuple[str, ...]:
    """The addresses of all inference services. Raises Refused."""
    places = [inference_of(settings, stage) for stage in ("", *inference_by_stage(settings))]
    return tuple(dict.fromkeys(url for kind, urls in places if kind == HTTP for url in urls))


def inference_by_stage(settings: Settings) -> Mapping[str, str]:
    """What is set for single stages.

    Raises:
        Refused: it cannot be understood.
    """
    pairs = [part.partition("=")[::2] for part in settings.stage_inference.split()]
    if not all(stage and said for stage, said in pairs):
        said = redact_address(settings.stage_inference)
        raise Refused(f"stage_inference = {said!r} is invalid", 'Write "STAGE=WHERE STAGE=WHERE".')
    return dict(pairs)


def _is_service(url: str) -> bool:
    """Whether it has the form of a service's address."""
    try:
        place = urlsplit(url)
        return place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:  # a port that is no number, half a bracket
        return False


def uses_stub(settings: Settings) -> bool:
    """Whether some stage uses the stub: its results are kept apart from real ones."""
    return STUB in {settings.inference, *inference_by_stage(settings).values()}


def models_folder(settings: Settings) -> Path:
    """Where weights are kept."""
    return local_path(settings.models) if settings.models else Path(platformdirs.user_cache_dir("rushes")) / "models"
