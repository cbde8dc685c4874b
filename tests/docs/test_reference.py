"""The reference is made from the program: it is never stale, and names everything there is."""

import importlib.util
import re
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import click
import pytest

from rushes.library.videos.export import KINDS
from rushes.settings import Settings
from rushes.surfaces.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "settings.md", "errors.md", "http.md"])
def test_the_reference_is_what_the_program_says(maker: ModuleType, name: str) -> None:
    assert (REFERENCE / name).read_text("utf-8") == maker.pages()[name], "run scripts/make_reference.py"


def test_a_stale_page_is_noticed_and_made_again(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(maker, "FOLDER", tmp_path)
    assert maker.run(check=True) == 1
    assert "cli.md is stale" in capsys.readouterr().err
    assert maker.run(check=False) == 0
    (tmp_path / "errors.md").write_text("old")
    assert maker.run(check=True) == 1
    assert maker.run(check=False) == 0
    assert maker.run(check=True) == 0


def test_every_command_setting_and_error_is_in_the_reference(maker: ModuleType) -> None:
    commands = (REFERENCE / "cli.md").read_text("utf-8")
    for name in main.list_commands(click.Context(main)):
        assert f"### rushes {name}\n" in commands
    settings = (REFERENCE / "settings.md").read_text("utf-8")
    assert all(f"| `{f.name}` |" in settings for f in fields(Settings))
    errors = (REFERENCE / "errors.md").read_text("utf-8")
    assert all(f"| `{kind.__name__}` |" in errors for kind in maker.tree())


def test_every_exit_code_that_an_error_has_is_explained(maker: ModuleType) -> None:
    assert {kind.exit_code for kind in maker.tree()} <= set(maker.CODES)


def test_every_message_type_that_a_command_writes_is_explained(maker: ModuleType) -> None:
    sources = (ROOT / "src" / "rushes" / "surfaces" / "cli").rglob("*.py")
    said = re.compile(r'\.(?:message|rows)\(\s*"(\w+)"')
    written = {name for file in sources for name in said.findall(file.read_text("utf-8"))}
    assert written == set(maker.MESSAGES)


def test_the_help_of_export_names_every_kind() -> None:
    command = main.get_command(click.Context(main), "export")
    assert command
    named = re.search(r"KIND: (.+?)\. Writes", command.help or "")
    assert named
    assert set(re.split(r",\s+", named[1])) == set(KINDS)
