"""A stage: one kind of work. It is given a Work and saves what it makes; it knows no jobs, leases or databases."""

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rushes.blobs.port import Blobs
from rushes.domain.errors import BadMedia, SourceChanged, SourceMissing
from rushes.domain.keys import JSON, canonical, video_id
from rushes.domain.result import Artifact, Manifest
from rushes.domain.span import Span
from rushes.domain.stage import StageSpec
from rushes.domain.video import Fingerprint, Footage, VideoFacts
from rushes.engines.port import Engine


@dataclass(frozen=True, slots=True)
class Input:
    """A result of another stage, ready to be read."""

    manifest: Manifest
    owner: str
    blobs: Blobs

    def path(self, name: str) -> Path:
        """A local file with the artifact's bytes, to be read only."""
        return self.blobs.local(self.owner, self.manifest.artifact(name).sha256)

    def bytes(self, name: str) -> bytes:
        """The artifact's bytes."""
        with self.blobs.open(self.owner, self.manifest.artifact(name).sha256) as f:
            return f.read()

    def json(self, name: str) -> JSON:
        """The artifact as JSON."""
        return json.loads(self.bytes(name))


@dataclass(slots=True)
class Saved:
    """What a stage has saved for one output so far."""

    artifacts: list[Artifact] = field(default_factory=list)
    count: int = 0
    facts: dict[str, JSON] = field(default_factory=dict)


@dataclass(slots=True)
class Work:
    """One task as a stage sees it: its part of the footage, its inputs, a scratch folder, a place for what it makes.

    `wanted` names the outputs to make (those that exist already are left out); `span` is None for whole videos;
    `seed` is fixed by the question, for whatever needs chance.
    """

    owner: str
    stage: str
    chunk: int | None
    span: Span | None
    options: Mapping[str, JSON]
    models: Mapping[str, str]
    wanted: frozenset[str]
    inputs_by_name: Mapping[str, tuple[Input, ...]]
    source: Footage | None
    fingerprint: Fingerprint | None
    scratch: Path
    blobs: Blobs
    engine: Engine
    seed: int
    tell: Callable[[float], None] = lambda _fraction: None
    say: Callable[[str], None] = lambda _line: None
    saved: dict[str, Saved] = field(default_factory=dict)
    _facts: VideoFacts | None = None

    def inputs(self, stage: str, output: str) -> tuple[Input, ...]:
        """Results of a needed stage, in chunk order (one for whole-video stages and for the same chunk)."""
        return self.inputs_by_name.get(f"{stage}.{output}", ())

    def input(self, stage: str, output: str) -> Input:
        """The one result of a needed stage."""
        (only,) = self.inputs(stage, output)
        return only

    @property
    def facts(self) -> VideoFacts:
        """What probe found."""
        if self._facts is None:
            self._facts = VideoFacts.from_json(self.input("probe", "facts").json("facts.json"))
        return self._facts

    @property
    def video(self) -> str:
        """The id of the video, as published names use it."""
        return video_id(self.owner, self.facts.sha256)

    def footage(self) -> Footage:
        """The original, after a check that it is still the file that was taken in; a far one checks each read.

        Raises:
            SourceMissing, SourceChanged: it is not.
        """
        if self.source is None or self.fingerprint is None:
            raise BadMedia("this job has no original")
        if not isinstance(self.source, Path):
            return self.source
        try:
            now = self.source.stat()
        except OSError as e:
            raise SourceMissing(f"{self.source.name}: {e.strerror}") from e
        if (now.st_size, now.st_mtime_ns) != (self.fingerprint.size, self.fingerprint.mtime_ns):
            raise SourceChanged(f"{self.source.name} has changed since it was added")
        return self.source

    @property
    def promised(self) -> Fingerprint | None:
        """What was read of an original that was promised before it was there; None of any other."""
        if self.source is None or isinstance(self.source, Path) or not self.fingerprint or self.fingerprint.etag:
            return None
        return self.source.taken_in

    def save(self, output: str, name: str, data: bytes | Path, media_type: str, publish: str | None = None) -> Artifact:
        """Store an artifact of an output; `publish` is a name for people, made after the commit."""
        blob = self.blobs.put(self.owner, data)
        artifact = Artifact(name, blob.sha256, blob.size, media_type, publish)
        self.saved.setdefault(output, Saved()).artifacts.append(artifact)
        return artifact

    def refer(self, output: str, artifact: Artifact, name: str, publish: str | None = None) -> Artifact:
        """Make a stored artifact of another result part of this output under a new name; no bytes are copied."""
        mine = Artifact(name, artifact.sha256, artifact.size, artifact.media_type, publish)
        self.saved.setdefault(output, Saved()).artifacts.append(mine)
        return mine

    def save_json(self, output: str, name: str, doc: JSON, publish: str | None = None) -> Artifact:
        """Store a JSON document in its one byte form."""
        return self.save(output, name, canonical(doc), "application/json", publish)

    def count(self, output: str, observations: int) -> None:
        """How many observations an output holds."""
        self.saved.setdefault(output, Saved()).count = observations

    def note(self, output: str, **facts: JSON) -> None:
        """Small facts kept in the manifest itself."""
        self.saved.setdefault(output, Saved()).facts.update(facts)

    def progress(self, fraction: float) -> None:
        """How far the work is, 0 to 1; rides on the next renewal."""
        self.tell(min(1.0, max(0.0, fraction)))

    def log(self, line: str) -> None:
        """A line for people, best effort."""
        self.say(line)

    def temporary(self, suffix: str = "") -> Path:
        """A new file name in the scratch folder, gone when the task is over."""
        with tempfile.NamedTemporaryFile(dir=self.scratch, suffix=suffix, delete=False) as f:
            return Path(f.name)


class Stage(Protocol):
    """A kind of work. Only `run` is required; a third party offers one by the entry point group `rushes.stages`."""

    spec: StageSpec

    def run(self, work: Work) -> None:
        """Make every output in `work.wanted` and save it. The same question must give the same bytes.

        Raises:
            TryAgain: it may work later.
            NeverWorks: it cannot work as it is.
        """
