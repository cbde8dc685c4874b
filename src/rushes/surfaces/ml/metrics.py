"""Counters of the inference service, in the text format of Prometheus."""

from collections.abc import Iterator

from rushes.library.inference import InferenceService


def exposition(service: InferenceService) -> str:
    """Every counter and gauge."""
    return "".join(f"{line}\n" for line in _lines(service))


def _lines(service: InferenceService) -> Iterator[str]:
    yield "# TYPE rushes_inference_calls_total counter"
    for (capability, outcome), count in sorted(service.calls.items()):
        yield f'rushes_inference_calls_total{{capability="{capability}",outcome="{outcome}"}} {count}'
    yield "# TYPE rushes_inference_seconds_total counter"
    for capability, seconds in sorted(service.seconds.items()):
        yield f'rushes_inference_seconds_total{{capability="{capability}"}} {seconds:.6f}'
    yield "# TYPE rushes_inference_refused_total counter"
    yield f"rushes_inference_refused_total {service.queue.refused}"
    yield "# TYPE rushes_inference_callers gauge"
    yield f"rushes_inference_callers {service.queue.inside}"
    yield "# TYPE rushes_inference_models_in_use gauge"
    yield f"rushes_inference_models_in_use {service.gate.used}"
    yield "# TYPE rushes_inference_models_in_use_most gauge"
    yield f"rushes_inference_models_in_use_most {service.gate.most}"
