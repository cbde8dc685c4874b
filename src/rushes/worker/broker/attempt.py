"""The worker's part of an attempt: which files a slot gets, and which of its outputs are stored.

Blobs first, then the manifest, then the ledger. A manifest that is there already is verified and adopted. The slot is
not believed: it reads its inputs and its original only, and names no blob that it has neither read nor made.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO

from rushes.blobs.documents import read_document
from rushes.blobs.key_rules import RESERVED_FOLDERS
from rushes.blobs.manifests import parse_manifest, read_manifest
from rushes.blobs.port import AttemptBlobs, Blob, Blobs
from rushes.domain.errors import BadMedia, DamagedBlob, NeverWorks
from rushes.domain.keys import JSON, digest, manifest_key, video_id
from rushes.domain.result import Artifact, Manifest, Provenance, Result, result_of
from rushes.domain.task import ANY_ENGINE, STUB, Lease, parse_spec
from rushes.domain.video import BlockOriginal, Fingerprint, RemoteOriginal
from rushes.tracing import of_task

EngineOf = Callable[[str], str]
_OF_A_JOB = ("jobs", "segments")  # folders of names that have the id of a job
_NEEDED = ("version", "source", "span", "options", "models", "inputs", "profile", "config_hash")


def _local(_stage: str) -> str:
    return "local"


@dataclass(frozen=True, slots=True)
class AttemptDeps:
    """What attempts work with: the blob store, and how originals are found."""

    blobs: AttemptBlobs
    adopt: Callable[[str, str], Result | None]  # owner and key of a result that was committed before, if it is sound
    original: Callable[[Fingerprint, str], RemoteOriginal]  # what was taken in, and its hash where that is known
    version: str
    engine_of: EngineOf = _local  # where the models of a stage run here

    @staticmethod
    def on(
        blobs: Blobs, original: Callable[[Fingerprint, str], RemoteOriginal], version: str, engine_of: EngineOf = _local
    ) -> "AttemptDeps":
        """On a blob store that is reached from here."""
        return AttemptDeps(blobs, partial(adopt, blobs), original, version, engine_of)


class Attempt:
    """One attempt at a task, as its worker sees it; also the blobs of that task, for a stage that runs right here."""

    def __init__(self, deps: AttemptDeps, lease: Lease) -> None:
        self._deps, self.lease = deps, lease
        self._spec = parse_spec(lease.spec)
        self._owner: str = self._spec["owner"]
        self._keys: Mapping[str, str] = self._spec["results"]
        self._sizes: dict[str, int] = {}  # of the blobs that it may read and name
        self._inputs: dict[str, list[Manifest]] = {}
        self._made: dict[str, Result] = {}
        self.told: set[str] = set()  # kinds of failures that its slot was answered with
        self.delay = 0.0  # seconds until an answer that it waits for is looked for

    def begin(self) -> JSON:
        """The task as the slot is told it; `wanted` is empty if all its results are there."""
        self._spec = parse_spec(self.lease.spec, _NEEDED)
        found = {output: self._deps.adopt(self._owner, key) for output, key in self._keys.items()}
        self._made = {output: result for output, result in found.items() if result}
        wanted = [output for output in self._keys if output not in self._made]
        told = {name: self._spec[name] for name in ("owner", "version", "span", "options", "models", "results")}
        told |= {"job": self.lease.job, "stage": self.stage, "chunk": self.lease.chunk, "engine": self.engine}
        told["chunks"] = self._spec.get("chunks", 0)
        task = {"wanted": wanted, **told}
        return {**task, "inputs": self.read_inputs(), "original": self._described()} if wanted else task

    def recorded(self, verb: str) -> AbstractContextManager[None]:
        """Record what its slot asks for, where traces are on."""
        name = {"put": "blobs.put", "commit": "blobs.commit", "infer": "inference"}.get(verb, f"blobs.{verb}")
        return of_task(self.lease.task, name)

    @property
    def stage(self) -> str:
        """The stage of its task."""
        return self.lease.stage

    @property
    def engine(self) -> str:
        """The engine that answers in this attempt; empty if none is asked."""
        wanted = str(self._spec.get("engine", ANY_ENGINE))
        return self._deps.engine_of(self.stage) if wanted == ANY_ENGINE else wanted

    @property
    def results(self) -> tuple[Result, ...]:
        """All results, once those that were wanted are committed. Raises KeyError before."""
        return tuple(self._made[output] for output in self._keys)

    def put(self, owner: str, source: Path | bytes) -> Blob:
        """Store what it made."""
        blob = self._deps.blobs.put(self._checked(owner), source)
        self._sizes[blob.sha256] = blob.size
        return blob

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """A blob of its inputs, or one that it made."""
        return self.local(owner, sha256).open("rb")

    def local(self, owner: str, sha256: str) -> Path:
        """The same as a local file."""
        if sha256 not in self._sizes:
            raise NeverWorks(f"blob {sha256[:12]!r} does not belong to this task")
        return self._deps.blobs.local(self._checked(owner), sha256)

    def check_manifest(self, manifest: Manifest, is_stored: Callable[[Artifact], bool]) -> None:
        """Whether it could have committed this manifest, after it has read its inputs.

        Raises:
            NeverWorks: it is not that of one of its results, or names what is not this task's.
        """
        if self._keys.get(manifest.output) != manifest.key:
            raise NeverWorks(f"{manifest.key[:80]!r} is not a result of this task")
        self._sizes.update((a.sha256, a.size) for a in manifest.artifacts if is_stored(a))
        for artifact in manifest.artifacts:
            self._artifact(artifact)
        if self._facts(dict(manifest.facts)) != manifest.facts:
            raise NeverWorks("this is not the location of the original")

    def may_read(self, sha256: str) -> bool:
        """Whether a blob is one of its inputs, once they are read, or one that it made."""
        return sha256 in self._sizes

    def open_original(self) -> int:
        """A descriptor of the original, if it is a file of this machine and still what was taken in.

        Raises:
            SourceMissing, SourceChanged, BadMedia: it is not.
        """
        if self.original is None or isinstance(self.original, BlockOriginal):
            raise BadMedia("this job has no original on this machine")
        with self.original.open() as file:
            return os.dup(file.fileno())

    def block(self, number: int) -> Path:
        """A local copy of one block of an original in a bucket."""
        if not isinstance(self.original, BlockOriginal):
            raise BadMedia("this job has no original in a bucket")
        return self.original.block(number)

    def commit(self, outputs: Mapping[str, JSON]) -> None:
        """Create the manifests of what it made; the first writer of each wins.

        Raises:
            NeverWorks: something is missing, or not this task's.
        """
        wanted = self._keys.keys() - self._made.keys()
        if missing := ", ".join(sorted(wanted - outputs.keys())):
            raise NeverWorks(f"stage {self.lease.stage} did not save: {missing}", "Fix the stage.")
        for output in sorted(wanted):
            self._made[output] = self._commit(output, outputs[output])

    @cached_property
    def taken_in(self) -> Fingerprint | None:
        """What was taken in as the original."""
        return Fingerprint.from_json(self._spec["source"]) if self._spec["source"] else None

    @cached_property
    def original(self) -> RemoteOriginal | None:
        """The original."""
        return self._deps.original(self.taken_in, self._probed) if self.taken_in else None

    def read_inputs(self) -> JSON:
        """The manifests of its inputs, whose blobs it may read from now on."""
        for name, keys in self._spec["inputs"].items():
            self._inputs[name] = [read_manifest(self._deps.blobs, self._owner, key) for key in keys]
        manifests = [manifest for some in self._inputs.values() for manifest in some]
        self._sizes.update((a.sha256, a.size) for manifest in manifests for a in manifest.artifacts)
        return {name: [asdict(manifest) for manifest in some] for name, some in self._inputs.items()}

    def _described(self) -> JSON:
        """What a slot is told of the original: its name, its version, and how it is read."""
        if self.original is None:
            return None
        block_size = self.original.block_size if isinstance(self.original, BlockOriginal) else 0
        about = {"name": self.original.name, "asked": self._spec["source"], "block_size": block_size}
        return {**about, "taken_in": asdict(self.original.taken_in)}

    def _checked(self, owner: str) -> str:
        if owner != self._owner:
            raise NeverWorks("these blobs belong to another owner")
        return owner

    def _commit(self, output: str, saved: JSON) -> Result:
        key = self._keys[output]
        artifacts = tuple(self._artifact(Artifact(**doc)) for doc in saved["artifacts"])
        facts = self._facts(dict(saved["facts"]))
        manifest = Manifest(key, output, artifacts, self._provenance(), count=int(saved["count"]), facts=facts)
        data = manifest.to_bytes()
        if self._deps.blobs.create(manifest_key(self._owner, key), data):
            return result_of(manifest, hashlib.sha256(data).hexdigest())
        first = self._deps.adopt(self._owner, key)
        if first is None:
            raise DamagedBlob(f"the manifest of {key} was damaged and is recreated")
        return first

    def _artifact(self, named: Artifact) -> Artifact:
        if self._sizes.get(named.sha256) != named.size:
            raise NeverWorks(f"{named.name} is not a blob of this task", "Fix the stage.")
        if named.publish is not None and not self._may_publish(named.publish):
            hint = "Published names look like folder/VIDEO/name."
            raise NeverWorks(f"{named.publish[:80]!r} is not a name of this video", hint)
        return replace(named, publish=None) if self.engine == STUB else named  # made-up answers stay unpublished

    def _may_publish(self, name: str) -> bool:
        """Whether a name has the video's id behind a folder or two, none of them a folder of the store itself.

        Below `jobs` and `segments` it has the id of this task's job instead.
        """
        folder, *rest = name.split("/")
        if folder in _OF_A_JOB:
            return rest[0] == self.lease.job and len(rest) > 1
        return folder not in RESERVED_FOLDERS and self._video in rest[:2] and rest[-1] != self._video

    def _facts(self, noted: dict[str, JSON]) -> dict[str, JSON]:
        """A slot does not say where the original is: of a promised one it is what came, of any other nothing."""
        if "source" not in noted:
            return noted
        promised = self.taken_in and self.taken_in.far and not self.taken_in.etag
        if not promised or self.original is None:
            raise NeverWorks("a stage cannot name another original", "Choose another name than source for this fact.")
        return {**noted, "source": asdict(self.original.taken_in)}

    @cached_property
    def _probed(self) -> str:
        """The hash of the film that this task is about; empty before it is probed."""
        for probed in self._inputs.get("probe.facts", []):
            with self._deps.blobs.open(self._owner, probed.artifact("facts.json").sha256) as file:
                return str(json.load(file)["sha256"])
        return ""

    @property
    def _video(self) -> str:
        return video_id(self._owner, self._probed) if self._probed else ""

    def _provenance(self) -> Provenance:
        spec, lease = self._spec, self.lease
        return Provenance(
            run_id=lease.job,
            stage=lease.stage,
            producer=f"rushes.{lease.stage}",
            producer_version=f"{self._deps.version}/{spec['version']}",
            model_profile=spec["profile"],
            config_hash=spec["config_hash"],
            input_hash=digest([spec["inputs"], spec["source"], spec["span"]])[:16],
            attempt=lease.fence,
            models=tuple(m for m in spec["models"].values() if m),
            engine=self.engine,
            fencing_token=lease.token,
        )


def adopt(blobs: Blobs, owner: str, key: str) -> Result | None:
    """The result that was committed before, if all of it is sound; a damaged one is removed."""
    name = manifest_key(owner, key)
    try:
        data = read_document(blobs, name)
    except DamagedBlob:  # in a bucket, where the bytes cannot be read to compare them
        blobs.delete(name)
        return None
    if data is None:
        return None
    try:
        manifest = parse_manifest(data, key)
    except DamagedBlob:
        blobs.delete(name, was=data)
        return None
    bad = [a.sha256 for a in manifest.artifacts if not blobs.verify(owner, a.sha256)]
    if not bad:
        return result_of(manifest, hashlib.sha256(data).hexdigest())
    repaired = [blobs.verify(owner, sha256, quarantine=True) for sha256 in bad]
    if all(repaired):
        return adopt(blobs, owner, key)  # others repaired it meanwhile
    blobs.delete(name, was=data)
    return None
