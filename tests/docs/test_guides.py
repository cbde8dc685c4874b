"""What the pages for operators tell people to type and to set is there, with that spelling."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

from rushes import settings
from rushes.surfaces.cli.main import main
from rushes.surfaces.cli.session import Session

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*(ROOT / "docs" / "guides").glob("run-on-*.md"), *(ROOT / "docs" / "runbooks").glob("*.md")]
FENCE = re.compile(r"^ *```([a-z]+)(?: run)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
ENDS = re.compile(r"&&|\|\||[|;\n]")

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, language: str) -> list[str]:
    return [text for of, text in FENCE.findall(page.read_text("utf-8")) if of == language]


def spans(page: Path) -> list[str]:
    """What is set in type within sentences, on one line."""
    return [" ".join(span.split()) for span in INLINE.findall(FENCE.sub("", page.read_text("utf-8")))]


def commands(page: Path) -> Iterator[list[str]]:
    """The words after `rushes`, with the marks of what may be left out taken off."""
    for text in (*blocks(page, "sh"), *spans(page)):
        for line in ENDS.split(text):
            words = [word.strip("[]") for word in shlex.split(line, comments=True)]
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words[:1] == ["runuser"]:
                words = words[words.index("--") + 1 :]
            if words[:1] == ["rushes"] and len(words) > 1:
                yield words[1:]


def understand(words: list[str]) -> None:
    """As the program does, up to where the work begins."""
    command: click.Command | None = main
    while isinstance(command, click.Group):
        name = words.pop(0)
        command = command.get_command(click.Context(command), name)
        assert command, f"unknown command {name!r}"
    assert command
    parent = click.Context(main, obj=Session(), **main.context_settings)
    command.make_context(command.name, words, parent=parent).close()


@pages
def test_every_command_is_understood(page: Path) -> None:
    for words in commands(page):
        told = " ".join(words)
        try:
            understand(words)
        except click.UsageError as e:
            pytest.fail(f"{page.name}: rushes {told}: {e.format_message()}")


@pages
def test_every_setting_can_be_set_so(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "user_file", lambda: tmp_path / "user.toml")
    inline = [span for span in spans(page) if re.match(r"[a-z0-9_]+ = ", span)]
    for text in (*blocks(page, "toml"), *inline):
        (tmp_path / "rushes.toml").write_text(text, "utf-8")
        settings.load(tmp_path, {})


@pages
def test_every_variable_and_file_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    known = {"RUSHES_HOME", *(f"RUSHES_{f.name.upper()}" for f in fields(settings.Settings))}
    assert set(re.findall(r"\bRUSHES_[A-Z0-9_]+", text)) <= known
    for name in (span for span in spans(page) if re.match(r"(infra|scripts|benchmarks|proof)/", span)):
        assert (ROOT / name).exists(), name


def test_something_is_checked() -> None:
    found = [words for page in PAGES for words in commands(page)]
    assert len(found) > 20
    assert ["worker", "--slots", "4"] in found
    with pytest.raises(click.UsageError):
        understand(["failed", "retry", "KIND"])
