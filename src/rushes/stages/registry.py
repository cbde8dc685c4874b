"""All stages there are: ours, and those that installed packages offer by the entry point group `rushes.stages`."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

from rushes.domain.errors import Refused
from rushes.domain.keys import is_name
from rushes.domain.stage import StageSpec
from rushes.stages.port import Stage

OURS = (
    *("probe", "develop", "playlist", "shots", "audio", "transcribe", "transcript"),
    *("read_text", "segments", "objects", "faces", "places", "clip"),
    *("preview", "depth", "grade", "stereo", "join"),
)
GROUP = "rushes.stages"
_RUNTIMES = {"objects": "ai_edge_litert", "places": "ai_edge_litert"}  # not to be had on every platform


def load_stages() -> dict[str, Stage]:
    """Stages by name; nobody may take a name that is taken.

    Raises:
        Refused: a package offers something that is no stage, or a name twice.
    """
    here = [name for name in OURS if name not in _RUNTIMES or find_spec(_RUNTIMES[name])]
    stages: dict[str, Stage] = {name: import_module(f"rushes.stages.{name}").STAGE for name in here}
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        stage = point.load()
        name = _checked(stage, point.value)
        if name in stages:
            raise Refused(f"{point.value}: the stage {name!r} already exists", "Give it another name.")
        stages[name] = stage
    return stages


def cards_of(stages: Mapping[str, Stage]) -> dict[str, StageSpec]:
    """What each stage says of itself."""
    return {name: stage.card for name, stage in stages.items()}


def _checked(stage: object, where: str) -> str:
    card = getattr(stage, "card", None)
    if not isinstance(card, StageSpec) or not callable(getattr(stage, "run", None)):
        raise Refused(f"{where} is not a stage: it needs a card and a run(work)", "See the guide: write a stage.")
    if not is_name(card.name) or not card.outputs or not all(map(is_name, card.outputs)):
        raise Refused(f"{where}: {card.name!r} or its outputs are invalid names", "Use lower case letters, digits, _.")
    return card.name
