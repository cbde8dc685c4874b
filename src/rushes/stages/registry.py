"""All stages: the built-in ones, and those of installed packages (entry point group `rushes.stages`)."""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec

from rushes.domain.errors import Refused
from rushes.domain.keys import is_name
from rushes.domain.stage import StageSpec
from rushes.stages.audio import Audio
from rushes.stages.clip import Clip
from rushes.stages.depth import Depth
from rushes.stages.develop import Develop
from rushes.stages.faces import Faces
from rushes.stages.grade import DepthGrade
from rushes.stages.join import Join
from rushes.stages.objects import Objects
from rushes.stages.pictures import Pictures
from rushes.stages.places import Places
from rushes.stages.playlist import Playlist
from rushes.stages.port import Stage
from rushes.stages.preview import Preview
from rushes.stages.probe import Probe
from rushes.stages.read_text import ReadText
from rushes.stages.segments import Segments
from rushes.stages.shots import Shots
from rushes.stages.source_segments import SourceSegments
from rushes.stages.stereo import Stereo
from rushes.stages.stills import Stills
from rushes.stages.transcribe import Transcribe
from rushes.stages.transcript import Transcript

_BUILT_IN: tuple[Stage, ...] = (
    *(Probe(), Develop(), Playlist(), Shots(), Audio(), Transcribe(), Transcript()),
    *(Stills(), ReadText(), Segments(), Objects(), Faces(), Places(), Pictures(), Clip()),
    *(Preview(), Depth(), DepthGrade(), SourceSegments(), Stereo(), Join()),
)
GROUP = "rushes.stages"
_RUNTIMES = {"objects": "ai_edge_litert", "places": "ai_edge_litert"}  # not available on every platform


def load_stages(runs_elsewhere: Callable[[str], bool] = lambda _stage: False) -> dict[str, Stage]:
    """Stages by name; one whose models run elsewhere needs no library for them here.

    Raises:
        Refused: a package offers something that is not a stage, or a name that is taken.
    """
    named = {stage.spec.name: stage for stage in _BUILT_IN}
    lacks = {name for name, runtime in _RUNTIMES.items() if not runs_elsewhere(name) and not find_spec(runtime)}
    stages = {name: stage for name, stage in named.items() if name not in lacks}
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        stage = point.load()
        name = _checked(stage, point.value)
        if name in stages:
            raise Refused(f"{point.value}: a stage named {name!r} exists already", "Rename it.")
        stages[name] = stage
    return stages


def specs_of(stages: Mapping[str, Stage]) -> dict[str, StageSpec]:
    """The spec of each stage."""
    return {name: stage.spec for name, stage in stages.items()}


def _checked(stage: object, where: str) -> str:
    spec = getattr(stage, "spec", None)
    if not isinstance(spec, StageSpec) or not callable(getattr(stage, "run", None)):
        hint = "See docs/guides/write-a-stage.md"
        raise Refused(f"{where} is not a stage: it needs a `spec` and a `run(work)`", hint)
    if not is_name(spec.name) or not spec.outputs or not all(map(is_name, spec.outputs)):
        hint = "Use lower-case letters, digits and _."
        raise Refused(f"{where}: {spec.name!r} or one of its outputs is an invalid name", hint)
    return spec.name
