"""The stage port: a stage is given a Work and saves what it makes; it knows no jobs, leases or databases."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from rushes.blobs.port import Blob
from rushes.domain.errors import BadMedia
from rushes.domain.keys import JSON, canonical, video_id
from rushes.domain.observation import MEDIA_TYPE, Observation, dump
from rushes.domain.result import Artifact, Manifest
from rushes.domain.span import Span
from rushes.domain.stage import StageSpec
from rushes.domain.video import Fingerprint, RemoteOriginal, VideoFacts
from rushes.engines.port import Engine
from rushes.media.originals import LocalOriginal


class TaskBlobs(Protocol):
    """The blobs of one task as a stage may use them: those of its inputs, and those that it makes.

    A slot asks its worker for them; any blob store will do as well.
    """

    def put(self, owner: str, source: Path | bytes) -> Blob:
        """Store bytes or a file. Raises NoRoom."""

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """A seekable reader. Raises DamagedBlob."""

    def local(self, owner: str, sha256: str) -> Path:
        """A local file with its bytes, to be read only. Raises DamagedBlob."""


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """An artifact as a file that is opened when it is read."""

    name: str
    owner: str
    sha256: str
    blobs: TaskBlobs

    def open(self) -> BinaryIO:
        """A seekable reader."""
        return self.blobs.open(self.owner, self.sha256)


@dataclass(frozen=True, slots=True)
class Input:
    """A result of another stage, ready to be read."""

    manifest: Manifest
    owner: str
    blobs: TaskBlobs

    def file(self, name: str) -> ArtifactFile:
        """The artifact, to be opened where it is read; no bytes are copied."""
        return ArtifactFile(name, self.owner, self.manifest.artifact(name).sha256, self.blobs)

    def open(self, name: str) -> BinaryIO:
        """A seekable reader of the artifact."""
        return self.file(name).open()

    def path(self, name: str) -> Path:
        """A local file with the artifact's bytes, to be read only: for what needs a name; in a slot it is a copy."""
        return self.blobs.local(self.owner, self.manifest.artifact(name).sha256)

    def bytes(self, name: str) -> bytes:
        """The artifact's bytes."""
        with self.open(name) as f:
            return f.read()

    def json(self, name: str) -> JSON:
        """The artifact as JSON."""
        return json.loads(self.bytes(name))


@dataclass(slots=True)
class OutputDraft:
    """What a stage has saved for one output so far: the manifest to be."""

    artifacts: list[Artifact] = field(default_factory=list)
    count: int = 0
    facts: dict[str, JSON] = field(default_factory=dict)


@dataclass(slots=True)
class Work:
    """One task as a stage sees it: its span of the footage, its inputs, a scratch folder, and where outputs go.

    `wanted` names the outputs to make (without those that exist); `span` is None for whole videos; `seed` depends on
    the result keys only. `chunks` is how many chunks the plan has, for a stage that is `per_job`.
    """

    owner: str
    stage: str
    chunk: int | None
    span: Span | None
    options: Mapping[str, JSON]
    models: Mapping[str, str]
    wanted: frozenset[str]
    inputs_by_name: Mapping[str, tuple[Input, ...]]
    source: Path | RemoteOriginal | None
    fingerprint: Fingerprint | None
    scratch: Path
    blobs: TaskBlobs
    engine: Engine
    seed: int
    job: str = ""
    chunks: int = 0
    on_progress: Callable[[float], None] = lambda _fraction: None
    on_log: Callable[[str], None] = lambda _line: None
    saved: dict[str, OutputDraft] = field(default_factory=dict)
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

    def footage(self) -> Path | RemoteOriginal:
        """The original; each open of it is checked to be the file that was taken in, wherever it lies."""
        if self.source is None:
            raise BadMedia("this job has no original")
        if isinstance(self.source, LocalOriginal) and self.inputs("probe", "facts"):
            return replace(self.source, sha256=self.facts.sha256)
        return self.source

    @property
    def promised(self) -> Fingerprint | None:
        """The fingerprint of an upload for which the job was submitted before it arrived; None for any other."""
        if self.source is None or isinstance(self.source, Path) or not self.fingerprint:
            return None
        return self.source.taken_in if self.fingerprint.far and not self.fingerprint.etag else None

    def save(self, output: str, name: str, data: bytes | Path, media_type: str, publish: str | None = None) -> Artifact:
        """Store an artifact of an output; `publish` is a published name, linked after the commit."""
        blob = self.blobs.put(self.owner, data)
        artifact = Artifact(name, blob.sha256, blob.size, media_type, publish)
        self.saved.setdefault(output, OutputDraft()).artifacts.append(artifact)
        return artifact

    def refer(self, output: str, artifact: Artifact, name: str, publish: str | None = None) -> Artifact:
        """Add an artifact of another result to this output under a new name; no bytes are copied."""
        mine = Artifact(name, artifact.sha256, artifact.size, artifact.media_type, publish)
        self.saved.setdefault(output, OutputDraft()).artifacts.append(mine)
        return mine

    def save_json(self, output: str, name: str, doc: JSON, publish: str | None = None) -> Artifact:
        """Store a JSON document in canonical form."""
        return self.save(output, name, canonical(doc), "application/json", publish)

    def save_observations(self, output: str, name: str, rows: Sequence[Observation], **facts: JSON) -> None:
        """Store observations, count them and note facts of them."""
        self.save(output, name, dump(rows), MEDIA_TYPE)
        self.count(output, len(rows))
        self.note(output, **facts)

    def count(self, output: str, observations: int) -> None:
        """How many observations an output holds."""
        self.saved.setdefault(output, OutputDraft()).count = observations

    def note(self, output: str, **facts: JSON) -> None:
        """Small facts kept in the manifest itself."""
        self.saved.setdefault(output, OutputDraft()).facts.update(facts)

    def progress(self, fraction: float) -> None:
        """Report progress, 0 to 1; it is sent with the next renewal of the lease."""
        self.on_progress(min(1.0, max(0.0, fraction)))

    def log(self, line: str) -> None:
        """Write a log line; best effort."""
        self.on_log(line)

    def temporary(self, suffix: str = "") -> Path:
        """A new file in the scratch folder, which is deleted with the task."""
        with tempfile.NamedTemporaryFile(dir=self.scratch, suffix=suffix, delete=False) as f:
            return Path(f.name)


class Stage(Protocol):
    """A kind of work. Other packages offer theirs by the entry point group `rushes.stages`."""

    spec: StageSpec

    def run(self, work: Work) -> None:
        """Make and save every output in `work.wanted`. The same result key must always give the same bytes.

        Raises:
            TryAgain: it may work later.
            NeverWorks: it cannot work as it is.
        """
