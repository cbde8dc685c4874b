"""Inference services and asynchronous endpoints of stages, as the settings name them; events of late answers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rushes.bucket.location import parse_location
from rushes.domain.errors import Refused
from rushes.engines.http import InferenceServices, InferenceSession
from rushes.engines.port import AsynchronousEngine
from rushes.home import Home
from rushes.jobs.answers import AnswerEvents
from rushes.model_settings import HTTP, SAGEMAKER, inference_by_stage, inference_of
from rushes.settings import Settings
from rushes.wiring.engines import services_of
from rushes.wiring.setup import event_queue, needed


class StageServices:
    """The inference services and asynchronous endpoints of a worker's stages, shared by its slots."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        """In a folder of this machine all processes of the worker note what they asked."""
        self._settings, self._folder = settings, folder
        self._services: dict[tuple[str, ...], InferenceServices] = {}
        self._endpoints: dict[tuple[str, ...], AsynchronousEngine] = {}

    def session(self, stage: str) -> InferenceSession | None:
        """Connections for the tasks of a stage in one slot; None if its models do not run in a service."""
        kind, urls = inference_of(self._settings, stage)
        if kind != HTTP:
            return None
        found = self._services.get(urls) or self._services.setdefault(urls, services_of(self._settings, urls))
        return found.session()  # one for all slots, also of two that ask at once

    def endpoint(self, stage: str) -> AsynchronousEngine | None:
        """The asynchronous endpoint of a stage; None if its models do not run in one.

        Raises:
            Refused: there is no bucket that it could read.
        """
        kind, names = inference_of(self._settings, stage)
        if kind != SAGEMAKER:
            return None
        if found := self._endpoints.get(names):
            return found
        return self._endpoints.setdefault(names, _endpoint_of(self._settings, names[0], self._folder))

    def endpoints(self) -> list[AsynchronousEngine]:
        """All of them."""
        stages = ("", *inference_by_stage(self._settings))
        return list(dict.fromkeys(found for stage in stages if (found := self.endpoint(stage))))


def _endpoint_of(s: Settings, name: str, scratch: Path) -> AsynchronousEngine:
    """The asynchronous endpoint of that name.

    Raises:
        Refused: there is no bucket that it could read.
    """
    folder = s.inference_bucket or (f"{s.blobs.rstrip('/')}/inference" if s.blobs.startswith("s3://") else "")
    if not folder:
        hint = 'Set inference_bucket = "s3://bucket/prefix", which it may read.'
        raise Refused("an asynchronous endpoint reads from a bucket", hint)
    with needed("aws"):
        from rushes.engines.in_flight import InFlight
        from rushes.engines.sagemaker import AsynchronousEndpoint
        from rushes.wiring.aws_client import service_of
    place = parse_location(folder, s.s3_endpoint, s.s3_key, s.s3_secret)
    service = service_of(s, "sagemaker-runtime")
    in_flight = InFlight(scratch / f"in-flight-{name}", s.inference_max_in_flight)
    return AsynchronousEndpoint(service, name, place, s.inference_seconds, in_flight)


def answer_events(home: Home) -> Callable[[], None] | None:
    """Handles the queue of answers; None without a queue of their own, or without asynchronous endpoints."""
    s = home.settings
    if not s.inference_events or s.inference_events == s.storage_events:
        return None
    engines = StageServices(s, home.scratch).endpoints()
    return partial(AnswerEvents(home, engines).hear, event_queue(s, s.inference_events)) if engines else None


def answer_waker(home: Home) -> Callable[[str, str], None] | None:
    """Wakes the task that waits for a key of a bucket; None without asynchronous endpoints."""
    engines = StageServices(home.settings, home.scratch).endpoints()
    return AnswerEvents(home, engines).wake if engines else None
