"""Figures of the inference service, in the text format of Prometheus."""

from collections.abc import Iterator

from rushes.library.inference import InferenceService
from rushes.metrics import Family, labels, text


def exposition(service: InferenceService) -> str:
    """Every counter, gauge and histogram."""
    return text(_families(service))


def _families(service: InferenceService) -> Iterator[Family]:
    calls = {labels(capability=name, outcome=outcome): n for (name, outcome), n in sorted(service.calls.items())}
    seconds = {labels(capability=name): sum for name, sum in sorted(service.seconds.items())}
    refused, callers = float(service.queue.refused), float(service.queue.inside)
    used, most = float(service.gate.used), float(service.gate.most)
    yield Family("rushes_inference_calls_total", "counter", "calls that ended, by capability and outcome", calls)
    yield Family("rushes_inference_seconds_total", "counter", "seconds that models worked, by capability", seconds)
    yield Family(
        "rushes_inference_wait_seconds",
        "histogram",
        "seconds that calls waited until a model was free",
        histograms={(): service.waits()},
    )
    yield Family("rushes_inference_refused_total", "counter", "callers that were told to come later", {(): refused})
    yield Family("rushes_inference_callers", "gauge", "callers that wait or are being answered", {(): callers})
    yield Family("rushes_inference_models_in_use", "gauge", "calls that use a model now", {(): used})
    yield Family("rushes_inference_models_in_use_max", "gauge", "calls that used a model at the same time", {(): most})
