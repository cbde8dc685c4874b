"""The reference is made from the program: it is never stale, and names everything there is."""

import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
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
def maker() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        yield import_module("make_reference")


@pytest.mark.parametrize(
    "name",
    [f"reference/{name}" for name in ("cli.md", "settings.md", "errors.md", "http.md", "mcp.json")]
    + ["documents.md", "../openapi/ml.yaml", "../openapi/rushes.yaml"],
)
def test_the_reference_is_what_the_program_says(maker: ModuleType, name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == maker.pages()[name], "run scripts/make_reference.py"


def test_a_stale_page_is_noticed_and_made_again(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(maker, "FOLDER", tmp_path)
    assert maker.run(check=True) == 1
    assert "cli.md is stale" in capsys.readouterr().err
    assert maker.run(check=False) == 0
    (tmp_path / "documents.md").write_text("old")
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


def test_a_conformance_test_that_names_no_clause_no_file_or_one_that_is_not_there_is_refused(
    maker: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "test_one.py"
    clauses_of = maker.document_clauses.clauses_of
    file.write_text('def test_it():\n    """Web UI: a | b.\n\n    Where: settings.py, library/jobs.py\n    """\n')
    (clause,) = clauses_of(file)
    assert (clause.place, clause.words, clause.where) == ("Web UI", "a | b.", ("settings.py", "library/jobs.py"))
    for text in ("No place.", "Web UI: a.", "Web UI: a.\n\n    Where: nowhere.py\n    "):
        file.write_text(f'def test_it():\n    """{text}"""\n')
        with pytest.raises(ValueError, match=r"test_one\.py::test_it"):
            list(clauses_of(file))
