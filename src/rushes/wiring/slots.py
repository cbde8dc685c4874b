"""Starting slots: the command, its settings, and its sandbox."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from rushes.domain.task import Lease
from rushes.engines.models.manifest import TESSERACT
from rushes.home import Home
from rushes.model_settings import models_folder, own_models
from rushes.settings import Settings
from rushes.wiring.stage_services import StageServices
from rushes.worker.broker.attempt import Attempt, AttemptDeps
from rushes.worker.child import ChildDeps
from rushes.worker.sandbox import OFF, Confinement
from rushes.worker.sandbox.environment import reduced

_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")  # start programs that have libraries
_TESSERACT_DATA = "/usr/share"


@dataclass(frozen=True, slots=True)
class SlotSettings:
    """What a slot is told when it starts; no secret is among it."""

    models: str
    own_models: list[str]
    threads: int
    log_level: str
    confinement: Confinement

    def to_json(self) -> str:
        """As one argument of a command."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "SlotSettings":
        """The inverse of to_json."""
        doc = json.loads(text)
        return SlotSettings(**{**doc, "confinement": Confinement(**doc["confinement"])})


def slot_process(home: Home, threads: int, attempt_deps: Callable[[Lease], AttemptDeps]) -> ChildDeps:
    """How slots of this home are started."""
    s = home.settings
    own = [path for _, path in own_models(s)]
    told = SlotSettings(str(models_folder(s)), own, threads, s.log_level, confinement_of(s))
    services = StageServices(s, home.scratch)
    return ChildDeps(
        argv=[sys.executable, "-P", "-m", "rushes.wiring", told.to_json()],
        env=lambda scratch: _environment(s, scratch),
        scratch=home.scratch,
        attempt=lambda lease: Attempt(attempt_deps(lease), lease),
        open_session=services.session,
        endpoint_of=services.endpoint,
    )


def film_process(s: Settings, scratch: Path) -> tuple[list[str], Mapping[str, str]]:
    """The command and the environment of a process that answers one question about a film, without models."""
    told = SlotSettings("", [], 1, s.log_level, replace(confinement_of(s), read=[]))
    return ["-P", "-m", "rushes.wiring.film", told.to_json()], _environment(s, scratch)


def confinement_of(s: Settings) -> Confinement:
    """What a slot may have."""
    tesseract = [found] if (found := shutil.which(TESSERACT)) else []  # a request may ask for it
    read = [str(models_folder(s)), *(path for _, path in own_models(s) if Path(path).is_absolute())]
    return Confinement(
        mode=s.sandbox,
        read=[*read, _TESSERACT_DATA] if tesseract else read,
        programs=[*_ffmpeg(), *tesseract, *(_LOADERS if tesseract else ())],
        address_bytes=s.slot_address_gb << 30,
        file_bytes=s.slot_file_gb << 30,
        cpu_seconds=max(86_400, s.task_seconds * s.slot_tasks) * (os.cpu_count() or 1),
    )


def _environment(s: Settings, scratch: Path) -> Mapping[str, str]:
    return os.environ if s.sandbox == OFF else reduced(os.environ, scratch)


def _ffmpeg() -> Iterator[str]:
    """The program in its wheel, or the one that is named instead; it is not started to find out."""
    if named := os.environ.get("IMAGEIO_FFMPEG_EXE"):
        yield from (str(Path(shutil.which(named) or named).resolve()), *_LOADERS)
    elif (wheel := find_spec("imageio_ffmpeg")) and wheel.origin:
        yield from map(str, Path(wheel.origin).parent.glob("binaries/ffmpeg-*"))
