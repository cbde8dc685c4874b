"""Results: outputs of tasks, never changed once written."""

from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from rushes.domain.keys import JSON, canonical


@dataclass(frozen=True, slots=True)
class Artifact:
    """An immutable file that a task made."""

    name: str
    sha256: str
    size: int
    media_type: str
    publish: str | None = None  # a published name, linked after the commit


@dataclass(frozen=True, slots=True)
class Provenance:
    """What produced a result; part of the manifest, never of artifacts."""

    run_id: str
    stage: str
    producer: str
    producer_version: str
    model_profile: str
    config_hash: str
    input_hash: str
    attempt: int
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The document that lists the artifacts of a result with hashes and provenance."""

    key: str
    output: str
    artifacts: tuple[Artifact, ...]
    provenance: Provenance
    schema_version: int = 1
    count: int = 0
    facts: dict[str, JSON] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The canonical document."""
        return canonical(asdict(self))

    @staticmethod
    def from_json(doc: JSON) -> "Manifest":
        """The inverse of to_bytes after json.loads. Raises KeyError, TypeError or ValueError on anything else."""
        origin = {**doc["provenance"], "models": tuple(doc["provenance"]["models"])}
        return Manifest(
            key=doc["key"],
            output=doc["output"],
            artifacts=tuple(Artifact(**a) for a in doc["artifacts"]),
            provenance=Provenance(**origin),
            schema_version=int(doc["schema_version"]),
            count=int(doc["count"]),
            facts=dict(doc["facts"]),
        )

    def artifact(self, name: str) -> Artifact:
        """The artifact of that name. Raises KeyError."""
        for artifact in self.artifacts:
            if artifact.name == name:
                return artifact
        raise KeyError(name)


class Result(NamedTuple):  # a tuple, as a lease is
    """The ledger's row for a result: enough to find and check its manifest."""

    key: str
    output: str
    manifest_sha256: str
    size: int = 0  # bytes of all its artifacts
    count: int = 0  # type: ignore[assignment]  # observations; hides tuple.count, which nobody calls
    schema_version: int = 1
    publishes: bool = False  # whether an artifact has a published name


def result_of(manifest: Manifest, manifest_sha256: str) -> Result:
    """The ledger row of a manifest."""
    return Result(
        key=manifest.key,
        output=manifest.output,
        manifest_sha256=manifest_sha256,
        size=sum(a.size for a in manifest.artifacts),
        count=manifest.count,
        schema_version=manifest.schema_version,
        publishes=any(a.publish for a in manifest.artifacts),
    )
