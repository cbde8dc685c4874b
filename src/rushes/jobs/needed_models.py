"""Which models the stages of a request need, by capability, and which of them are not on this machine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rushes.domain.job import Job
from rushes.domain.redaction import redact_address
from rushes.engines.models.manifest import TESSERACT, Model
from rushes.engines.models.speech import speech_model, speech_models
from rushes.home import Home
from rushes.jobs.why import Reason, WaitReason
from rushes.model_settings import LOCAL, SAGEMAKER, inference_of, own_model
from rushes.plan.planner import JobSpec


def model_question(home: Home, capability: str, profile: str) -> str:
    """What stands in a result's question for a capability: model names with their hashes.

    Raises:
        Refused: there is no such profile.
        ModelMissing: the configured path holds no model.
    """
    own = own_model(home.settings, capability, profile)
    if own in home.models.known:
        return home.models.known[own].name
    if capability == "speech":
        return speech_model(profile, home.models, own)
    if own:
        return own if own == TESSERACT else home.models.name_of(home.models.find(own))
    return "+".join(model.name for model in _of_profile(home, capability, profile))


def required_models(home: Home, capability: str, profile: str) -> tuple[Model, ...]:
    """The models of the manifest that answer for a capability."""
    own = own_model(home.settings, capability, profile)
    if own in home.models.known:
        return (home.models.known[own],)
    if capability == "speech":
        return speech_models(profile, home.models, own)
    return () if own else _of_profile(home, capability, profile)


def where_models_run(home: Home) -> Mapping[str, str]:
    """By capability, where its models run: local, stub, or the addresses of services and names of endpoints."""
    found: dict[str, dict[str, None]] = {}
    for stage, spec in home.specs.items():
        kind, places = inference_of(home.settings, stage)
        for capability in spec.models:
            far = ", ".join(map(redact_address, places))
            found.setdefault(capability, {})[f"{kind}:{far}" if kind == SAGEMAKER else far or kind] = None
    return {capability: ", ".join(sorted(places)) for capability, places in found.items()}


def missing_by_stage(
    home: Home, stages: Iterable[str], profile: str, models: Mapping[str, str]
) -> Mapping[str, tuple[str, ...]]:
    """The ids of models that these stages ask for and that are not here, by stage; none where they run elsewhere.

    `models` as a job names them.
    """

    def needed(capability: str) -> Sequence[Model]:
        if capability not in models:
            return required_models(home, capability, profile)
        ids = [name.partition("@")[0] for name in models[capability].split("+")]
        return [home.models.known[id] for id in ids if id in home.models.known]

    present = {kept.model.id for kept in home.models.ls() if kept.present}
    here = (stage for stage in stages if stage in home.specs and inference_of(home.settings, stage)[0] == LOCAL)
    lacks = {
        stage: tuple(m.id for c in home.specs[stage].models for m in needed(c) if m.id not in present) for stage in here
    }
    return {stage: ids for stage, ids in lacks.items() if ids}


def explain_missing_models(home: Home, job: Job, reasons: Sequence[WaitReason]) -> tuple[WaitReason, ...]:
    """Why tasks of a job do not run, where it is for want of a model."""
    spec = JobSpec.from_text(job.payload)
    lacks = missing_by_stage(home, set(spec.stages) - {*spec.stub}, spec.profile, spec.models)
    return tuple(_missing_model(lacks[b.stage], b) if b.stage in lacks else b for b in reasons)


def _missing_model(models: Sequence[str], because: WaitReason) -> WaitReason:
    if because.reason not in (Reason.NO_WORKER, Reason.NO_FREE_SLOT, Reason.NEXT):
        return because
    return replace(because, reason=Reason.NO_MODEL, detail=f"rushes models pull {' '.join(models)}")


def _of_profile(home: Home, capability: str, profile: str) -> tuple[Model, ...]:
    """Those of the profile, else those that serve every profile."""
    all_of_it = [m for m in home.models.known.values() if m.capability == capability]
    return tuple(m for m in all_of_it if m.profile == profile) or tuple(m for m in all_of_it if m.profile == "balanced")
