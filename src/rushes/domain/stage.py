"""Stage specs: what the planner needs to know of a stage."""

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
    """A kind of work: its name and version, its needs, outputs and options.

    `version` changes when the bytes of its outputs change. `needs` names stages, or one output of a stage
    (`develop.frames`): a chunk task needs the same chunk of a chunked stage and the whole of a whole-video stage; a
    whole-video task needs every chunk. `limits` names the options that a request may set: with the least and the most
    of a number, or the words allowed (none: any short text). `output_options` lists, for an output that only some
    options change, these. `models` names the capabilities whose model is part of the result key; `infers` names the
    outputs for which a stage asks an engine that needs no model of the manifest. `opens_plan` is true of probe alone.
    `intermediate` names outputs that only other stages read: gc may delete them once the job is done.
    `per_job` is true of a stage whose published names hold the id of the job: its results belong to that job alone.
    `expiring` names outputs made on request: gc may delete them after `clip_days`.
    """

    name: str
    version: int
    scope: Scope
    outputs: tuple[str, ...]
    needs: tuple[str, ...] = ()
    lane: str = "cpu"
    options: Mapping[str, JSON] = field(default_factory=dict)
    limits: Mapping[str, tuple[JSON, ...]] = field(default_factory=dict)
    output_options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    infers: tuple[str, ...] = ()
    reads_source: bool = False
    opens_plan: bool = False
    intermediate: tuple[str, ...] = ()
    expiring: tuple[str, ...] = ()
    per_job: bool = False

    @property
    def asks_engine(self) -> bool:
        """Whether its results depend on what an engine says."""
        return bool(self.models or self.infers)


def stage_of(need: str) -> str:
    """The stage that a need names."""
    return need.partition(".")[0]
