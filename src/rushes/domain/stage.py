"""What a stage says of itself, so that a plan can be made without running it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rushes.domain.keys import JSON


class Scope(StrEnum):
    """What one task of a stage works on."""

    CHUNK = "chunk"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A kind of work: its name and version, what it needs, makes and is asked.

    `version` changes when the bytes of its outputs change. `needs` names stages, or one output of a stage
    (`develop.frames`): a chunk task needs the same chunk of a chunked stage and the whole of a whole-video stage; a
    whole-video task needs every chunk. `asked` names, for outputs that not every option changes, those that do.
    `models` names the capabilities whose model is part of the question. `opens_plan` is true of probe alone.
    `passing` names outputs that only other stages read: gc may set them aside once the job is done.
    `expiring` names outputs made on request: gc may set them aside when the days of clips are over.
    """

    name: str
    version: int
    scope: Scope
    outputs: tuple[str, ...]
    needs: tuple[str, ...] = ()
    lane: str = "cpu"
    options: Mapping[str, JSON] = field(default_factory=dict)
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    reads_source: bool = False
    opens_plan: bool = False
    passing: tuple[str, ...] = ()
    expiring: tuple[str, ...] = ()


def stage_of(need: str) -> str:
    """The stage that a need names."""
    return need.partition(".")[0]
