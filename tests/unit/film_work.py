"""One film through stages without a worker: inputs and results are kept in a memory store."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from rushes.domain.keys import JSON
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.domain.span import Span
from rushes.domain.video import Fingerprint, VideoFacts
from rushes.engines.port import Engine
from rushes.media.originals import LocalOriginal
from rushes.stages.port import Input, OutputDraft, Stage, Work
from tests.memory_blobs import MemoryBlobs

OWNER = "me"
_NOBODY = Provenance("run", "stage", "rushes", "0", "", "", "", 1)


class _NoEngine:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"no model is needed here: {name}")


@dataclass
class FilmWork:
    """A film and what stages have made of it so far."""

    film: Path
    scratch: Path
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    made: dict[str, list[Input]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    taken: os.stat_result | None = None  # the file as it was when it was taken in
    engine: Engine | None = None
    models: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        stage: Stage,
        span: Span | None = None,
        wanted: Iterable[str] = (),
        options: Mapping[str, JSON] | None = None,
    ) -> dict[str, OutputDraft]:
        """Run a stage and keep its results as inputs of the next."""
        stat = self.taken or self.film.stat()
        taken_in = Fingerprint(
            str(self.film.parent.resolve() / self.film.name), stat.st_size, stat.st_mtime_ns, stat.st_ino
        )
        work = Work(
            job="job_toy",
            owner=OWNER,
            stage=stage.spec.name,
            chunk=None if span is None else 0,
            span=span,
            options={**stage.spec.options, **(options or {})},
            models=self.models,
            wanted=frozenset(wanted or stage.spec.outputs),
            inputs_by_name={name: tuple(inputs) for name, inputs in self.made.items()},
            source=LocalOriginal(self.film.parent, taken_in),
            fingerprint=taken_in,
            scratch=self.scratch,
            blobs=self.blobs,
            engine=self.engine or _engine(),
            seed=1,
            on_log=self.said.append,
        )
        stage.run(work)
        for output, saved in work.saved.items():
            self.keep(stage.spec.name, output, saved)
        return work.saved

    def keep(self, stage: str, output: str, saved: OutputDraft) -> None:
        manifest = Manifest("key", output, tuple(saved.artifacts), _NOBODY, 1, saved.count, saved.facts)
        self.made.setdefault(f"{stage}.{output}", []).append(Input(manifest, OWNER, self.blobs))

    def artifact(self, name: str, data: bytes, media_type: str) -> Artifact:
        blob = self.blobs.put(OWNER, data)
        return Artifact(name, blob.sha256, blob.size, media_type)

    @property
    def facts(self) -> VideoFacts:
        return VideoFacts.from_json(self.made["probe.facts"][0].json("facts.json"))

    def export(self, saved: OutputDraft, folder: Path) -> Path:
        """Lay the published artifacts out under their published base names, as a reader finds them."""
        for artifact in saved.artifacts:
            assert artifact.publish
            with self.blobs.open(OWNER, artifact.sha256) as f:
                (folder / Path(artifact.publish).name).write_bytes(f.read())
        return folder


def _engine() -> Engine:
    engine: Any = _NoEngine()
    return engine  # type: ignore[no-any-return]


def chunks(facts: VideoFacts, seconds: int) -> list[Span]:
    """A grid as a plan makes it."""
    track = facts.video
    assert track
    bounds = [track.start]
    for key in track.keys:
        if (key - bounds[-1]) * track.base >= seconds:
            bounds.append(key)
    return [Span(a, b, track.base) for a, b in zip(bounds, [*bounds[1:], track.end], strict=True)]


def room_for_one(patch: pytest.MonkeyPatch) -> list[str]:
    """From now on this machine has room for one copy of a far blob: the next drives it out. What was asked for."""
    asked = list[str]()

    def copy(blobs: MemoryBlobs, owner: str, sha256: str) -> BinaryIO:
        for left in blobs._copies.iterdir():
            left.unlink()
        asked.append(sha256)
        return blobs.local(owner, sha256).open("rb")

    patch.setattr(MemoryBlobs, "open", copy)
    return asked
