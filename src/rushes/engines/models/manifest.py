"""The manifest: which weights exist, where they come from, and the hashes by which they are known."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from rushes.domain.keys import JSON

OURS = "rushes"  # the package whose members lie in the folder weights


@dataclass(frozen=True, slots=True)
class Part:
    """A member of a package on the registry, or of this package's own weights."""

    package: str
    version: str
    member: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class File:
    """A file of a model: its parts joined in order."""

    name: str
    size: int
    sha256: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """What answers: weights with a name, a licence and a hash. The first file holds the weights."""

    id: str
    capability: str
    profile: str
    languages: tuple[str, ...]
    licence: str
    about: str
    files: tuple[File, ...]

    @property
    def name(self) -> str:
        """The id with the weights' hash: what stands in a result's question."""
        return named(self.id, self.files[0].sha256)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(f.size for f in self.files)

    @property
    def packages(self) -> tuple[tuple[str, str], ...]:
        """(package, version) of all that must be fetched for it, each once, in order."""
        parts = (p for f in self.files for p in f.parts)
        return tuple(dict.fromkeys((p.package, p.version) for p in parts if p.package != OURS))


def named(id: str, sha256: str) -> str:
    """`whisper-base@d01c3014`."""
    return f"{id}@{sha256[:8]}"


def load(text: str | None = None) -> Mapping[str, Model]:
    """The models of the packaged manifest (or of a given one) by id."""
    text = text if text is not None else files(__package__).joinpath("manifest.toml").read_text("utf-8")
    models = [_model(doc) for doc in tomllib.loads(text)["model"]]
    return {m.id: m for m in models}


def _model(doc: JSON) -> Model:
    return Model(
        id=doc["id"],
        capability=doc["capability"],
        profile=doc["profile"],
        languages=tuple(doc["languages"]),
        licence=doc["licence"],
        about=doc["about"],
        files=tuple(_file(f) for f in doc["file"]),
    )


def _file(doc: JSON) -> File:
    only = {name: doc.get(name) for name in ("package", "version", "member", "size", "sha256")}
    return File(doc["name"], doc["size"], doc["sha256"], tuple(Part(**p) for p in doc.get("parts", [only])))
