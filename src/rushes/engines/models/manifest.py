"""The manifest of models: their files, where these come from, and their hashes."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from rushes.domain.keys import JSON

OURS = "rushes"  # this package: its members lie in the folder weights
TESSERACT = "tesseract"  # a command on the PATH instead of a model: it has no weights in the store


@dataclass(frozen=True, slots=True)
class FilePart:
    """A member of a package on the registry, or of this package's own weights."""

    package: str
    version: str
    member: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model: its parts concatenated."""

    name: str
    size: int
    sha256: str
    parts: tuple[FilePart, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """Weights with a name, a licence and a hash. The first file holds the weights."""

    id: str
    capability: str
    profile: str
    languages: tuple[str, ...]
    licence: str
    about: str
    files: tuple[ModelFile, ...]

    @property
    def name(self) -> str:
        """The id with the hash of the weights, as result keys use it."""
        return versioned_name(self.id, self.files[0].sha256)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(f.size for f in self.files)

    @property
    def packages(self) -> tuple[tuple[str, str], ...]:
        """(package, version) of what must be downloaded, each once, in order."""
        parts = (p for f in self.files for p in f.parts)
        return tuple(dict.fromkeys((p.package, p.version) for p in parts if p.package != OURS))


def versioned_name(id: str, sha256: str) -> str:
    """`whisper-base@d01c3014`."""
    return f"{id}@{sha256[:8]}"


def load(text: str | None = None) -> Mapping[str, Model]:
    """The models of the packaged manifest (or of a given one) by id."""
    text = text if text is not None else files(__package__).joinpath("manifest.toml").read_text("utf-8")
    models = [_model(doc) for doc in tomllib.loads(text)["model"]]
    return {m.id: m for m in models}


def _model(doc: JSON) -> Model:
    plain = {name: doc[name] for name in ("id", "capability", "profile", "licence", "about")}
    return Model(**plain, languages=tuple(doc["languages"]), files=tuple(map(_file, doc["file"])))


def _file(doc: JSON) -> ModelFile:
    only = {name: doc.get(name) for name in ("package", "version", "member", "size", "sha256")}
    return ModelFile(doc["name"], doc["size"], doc["sha256"], tuple(FilePart(**p) for p in doc.get("parts", [only])))
