"""Results: what answers one question, once written never changed."""

from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from rushes.domain.keys import JSON, canonical

TEXT = "text/plain"  # the media type of what people read


@dataclass(frozen=True, slots=True)
class Artifact:
    """An immutable file that a task made."""

    name: str
    sha256: str
    size: int
    media_type: str
    publish: str | None = None  # a name for people and other tools, made after the commit


@dataclass(frozen=True, slots=True)
class Provenance:
    """What produced a result: stands in the manifest, never in artifact bytes."""

    run_id: str
    stage: str
    producer: str
    producer_version: str
    model_profile: str
    config_hash: str
    input_hash: str
    attempt: int
    models: tuple[str, ...] = ()
    engine: str = ""  # where these ran: local, http or stub; empty where none was asked
    fencing_token: int = 0  # of the film's lock, in a home that has one


@dataclass(frozen=True, slots=True)
class Manifest:
    """The small document that names a result's artifacts, their hashes and their provenance."""

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
        return {artifact.name: artifact for artifact in reversed(self.artifacts)}[name]


class Result(NamedTuple):  # a tuple, as a lease is
    """The ledger's row for a result: enough to find and check its manifest."""

    key: str
    output: str
    manifest_sha256: str
    size: int = 0  # bytes of all its artifacts
    count: int = 0  # type: ignore[assignment]  # observations inside; nobody counts fields
    schema_version: int = 1
    publishes: bool = False  # some artifact wants a published name
    text_sha256: str = ""  # of its plain text for people, if it has one


def result_of(manifest: Manifest, manifest_sha256: str) -> Result:
    """The ledger row that stands for a manifest."""
    text = next((a.sha256 for a in manifest.artifacts if a.media_type == TEXT), "")
    size, publishes = sum(a.size for a in manifest.artifacts), any(a.publish for a in manifest.artifacts) or bool(text)
    count, version = manifest.count, manifest.schema_version
    return Result(manifest.key, manifest.output, manifest_sha256, size, count, version, publishes, text)
