"""Set-up installs what pyproject.toml asks for, at one version, and only files whose hashes are known."""

import importlib
import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("make_constraints")


def test_constraints_have_everything_that_is_asked_for(maker: ModuleType) -> None:
    assert maker.main(["--check"]) == 0


def test_a_dependency_that_is_not_pinned_is_noticed(maker: ModuleType) -> None:
    pyproject = maker._project()
    pyproject["project"]["optional-dependencies"]["serve"].append("grpcio-health>=1")
    pyproject["project"]["optional-dependencies"]["prove"].append("huey>=99")
    text = (ROOT / "constraints.txt").read_text()
    faults = list(maker.missing(pyproject, text))
    assert [fault.split(",")[0] for fault in faults] == [
        "run asks for grpcio-health>=1",
        "test asks for grpcio-health>=1",
        "prove asks for grpcio-health>=1",
        "prove asks for huey>=99",
    ]


def test_a_pin_without_a_hash_is_noticed(maker: ModuleType) -> None:
    text = re.sub(r"(click==\S+) \\\n(    --hash.*\n)+", r"\1\n", (ROOT / "constraints.txt").read_text())
    assert list(maker.missing(maker._project(), text)) == ["click has no hash"]


@pytest.mark.parametrize("hashed", ["this file", "another file", "none"])
def test_set_up_installs_only_files_whose_hash_is_known(tmp_path: Path, hashed: str) -> None:
    wheel = tmp_path / "toy-1-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("toy.py", "")
        archive.writestr("toy-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1\n")
        archive.writestr("toy-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("toy-1.dist-info/RECORD", "")
    digest = sha256(wheel.read_bytes() if hashed == "this file" else b"").hexdigest()
    pin = "toy==1" + ("" if hashed == "none" else f" --hash=sha256:{digest}")
    (tmp_path / "constraints.txt").write_text(f"{pin}\n# end of run\nabsent==1\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=tmp_path, check=True)
    script = f". {ROOT}/scripts/setup.sh; python={sys.executable}; install_packages run"
    local = {"PIP_NO_INDEX": "1", "UV_NO_INDEX": "1", "PIP_FIND_LINKS": ".", "UV_FIND_LINKS": "."}
    done = subprocess.run(["sh", "-c", script], check=False, cwd=tmp_path, env={**os.environ, **local})
    assert done.returncode != 0  # there is no project here
    assert bool(list(tmp_path.glob(".venv/lib/*/site-packages/toy.py"))) == (hashed == "this file")
