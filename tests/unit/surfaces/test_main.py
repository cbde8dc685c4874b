"""The command itself: help that teaches, options in any place, errors in plain words, stable exit codes."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from rushes.domain import errors
from rushes.surfaces.cli.command import CliCommand
from rushes.surfaces.cli.commands import program
from rushes.surfaces.cli.main import COMMANDS, main
from tests.unit.cli_worker import films

Invoke = Callable[..., Result]


@pytest.fixture
def rushes(tmp_path: Path) -> Invoke:
    (tmp_path / "home").mkdir()
    return lambda *args: CliRunner().invoke(main, ["--home", str(tmp_path / "home"), *args])


def every_command() -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name in main.list_commands(click.Context(main)):
        command = main.get_command(click.Context(main), name)
        assert command
        subs = getattr(command, "commands", None)
        found += [(f"{name} {sub}", c) for sub, c in subs.items()] if subs else [(name, command)]
    return found


def test_rushes_alone_shows_the_commands_by_what_people_want() -> None:
    shown = CliRunner().invoke(main, [])
    assert shown.exit_code == 0
    titles = [line for line in shown.output.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == ["Options:", "Process:", "Use:", "Serve:", "Control:", "Maintain:"]


@pytest.mark.parametrize(("name", "command"), every_command(), ids=[n for n, _ in every_command()])
def test_every_command_teaches_with_one_sentence_and_examples(name: str, command: click.Command) -> None:
    assert isinstance(command, CliCommand)
    first = (command.help or "").split("\n")[0]
    assert first.endswith(".")
    assert command.examples
    assert all(" rushes " in f" {example}" for example in command.examples)
    shown = CliRunner().invoke(main, [*name.split(), "--help"])
    assert shown.exit_code == 0
    assert "Examples:" in shown.output
    assert all(len(line) <= 80 for line in shown.output.splitlines())


@pytest.mark.parametrize("group", [[], ["jobs"], ["failed"], ["models"], ["config"]])
def test_every_command_of_a_group_is_told_in_a_whole_sentence(group: list[str]) -> None:
    shown = CliRunner().invoke(main, [*group, "--help"]).output
    assert "..." not in shown.replace("[ARGS]...", "")
    assert "--json" in shown


@pytest.mark.parametrize(("name", "command"), every_command(), ids=[n for n, _ in every_command()])
def test_the_examples_can_be_parsed(name: str, command: click.Command) -> None:
    assert isinstance(command, CliCommand)
    for example in command.examples:
        words = shlex.split(re.split(r" (?:\||>|&&|>>) ", example)[0])  # a > in quotes is part of a query
        words = words[words.index("rushes") + 1 :]
        if " ".join(w for w in words if not w.startswith("-")).startswith(name):
            own = words[words.index(name.rsplit(maxsplit=1)[-1]) + 1 :]
            command.make_context(name, own, parent=main.make_context("rushes", []))


def test_the_sentence_in_the_overview_is_how_the_command_describes_itself() -> None:
    for group in COMMANDS.values():
        for name, (_, sentence) in group.items():
            command = main.get_command(click.Context(main), name)
            assert command
            assert (command.help or "").replace(";", ",")[:6] == sentence[:6], name


def test_the_options_that_hold_everywhere_work_before_and_after_the_command(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    (tmp_path / "home").mkdir()
    for args in (["--json", "--home", home, "ls"], ["ls", "--json", "--home", home], ["--home", home, "ls", "--json"]):
        shown = CliRunner().invoke(main, args)
        assert json.loads(shown.output) == {"videos": [], "cursor": ""}


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["show", "nothing"], 6),
        (["jobs", "why", "job_nothing"], 6),
        (["clip", "nothing", "--from", "1", "--to", "2"], 6),
        (["clip", "film.mp4"], 2),
        (["clip", "film.mp4", "--from", "soon", "--to", "2"], 2),
        (["run"], 2),
        (["run", "--chunk", "long", "x.mp4"], 2),
        (["run", "--recipe", "soup", "x.mp4"], 2),
        (["no-such-command"], 2),
        (["ls", "--limit", "many"], 2),
        (["restore", "nowhere"], 6),
        (["models", "pull", "no-such-model"], 6),
        (["failed", "retry", "--class", "NoSuchClass"], 6),
    ],
)
def test_each_kind_of_trouble_has_its_exit_code(rushes: Invoke, args: list[str], code: int) -> None:
    shown = rushes(*args)
    assert shown.exit_code == code, shown.output
    assert shown.stdout == ""
    assert shown.stderr.startswith("error  ")
    assert "\ndo     " in shown.stderr
    assert "Traceback" not in shown.stderr
    program = rushes(*args, "--json")
    assert program.exit_code == code
    doc = json.loads(program.stdout.splitlines()[-1])
    assert (doc["message_type"], doc["code"]) == ("exit_error", code)
    assert doc["message"]


@pytest.mark.parametrize(("args", "meant"), [(["serch", "x"], "rushes search"), (["jobs", "lst"], "rushes jobs ls")])
def test_a_slip_of_the_pen_is_answered_with_what_was_meant(args: list[str], meant: str) -> None:
    shown = CliRunner().invoke(main, args, prog_name="rushes")
    assert shown.exit_code == 2
    assert f"Did you mean {meant}?" in shown.stderr


def leaves(kind: type[errors.RushesError]) -> list[type[errors.RushesError]]:
    return [kind, *(leaf for sub in kind.__subclasses__() for leaf in leaves(sub))]


OURS = [
    kind for kind in leaves(errors.RushesError) if kind.__module__ == errors.__name__ and kind is not errors.Requested
]


@pytest.mark.parametrize("kind", OURS)
def test_every_error_of_the_tree_is_told_with_its_meaning_hint_and_code(
    rushes: Invoke, monkeypatch: pytest.MonkeyPatch, kind: type[errors.RushesError]
) -> None:
    def raises(_session: object) -> None:
        raise kind("the film broke")

    monkeypatch.setattr(program.version, "callback", click.pass_obj(raises))
    shown = rushes("version")
    assert shown.exit_code == kind.exit_code
    lines = " ".join(shown.stderr.split())
    assert lines.startswith("error the film broke ")
    assert (" means " in lines) is not (bool(kind.__subclasses__()) or issubclass(kind, errors.Refused))
    assert f"do {kind.hint}" in lines
    assert f"{kind.__name__}, exit {kind.exit_code}" in lines


def test_what_another_worker_carries_out_is_no_error(rushes: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, errors.Requested("asked: done within 15 s"))
    shown = rushes("version")
    assert (shown.exit_code, shown.stdout.strip(), shown.stderr) == (0, "asked: done within 15 s", "")


def broken(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def raises(_session: object) -> None:
        raise error

    monkeypatch.setattr(program.version, "callback", click.pass_obj(raises))


def test_a_bug_is_one_line_and_its_traceback_lies_in_the_home(
    rushes: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken(monkeypatch, ZeroDivisionError("by \x1b[31mnought"))
    shown = rushes("version")
    assert shown.exit_code == 1
    assert "ZeroDivisionError: by [31mnought" in shown.stderr
    assert "Traceback" not in shown.stderr
    (kept,) = (tmp_path / "home" / "logs").glob("bug-*.txt")
    assert kept.name in shown.stderr.replace("\n       ", "")
    assert "ZeroDivisionError" in kept.read_text()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PermissionError(13, "Permission denied", "/films/x"), 4),
        (OSError(28, "No space left on device", "/films/x"), 8),
        (FileNotFoundError(2, "No such file or directory", "/films/x"), 1),
    ],
)
def test_what_the_system_refuses_is_told_about_its_place(
    rushes: Invoke, monkeypatch: pytest.MonkeyPatch, error: OSError, code: int
) -> None:
    broken(monkeypatch, error)
    shown = rushes("version")
    assert shown.exit_code == code
    assert shown.stderr.startswith(f"error  /films/x: {error.strerror}\ndo     ")
    assert "bug in rushes" not in shown.stderr
    assert json.loads(rushes("version", "--json").stdout)["code"] == code


def test_a_home_that_was_named_and_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    for command in (["ls"], ["doctor"], ["verify"], ["backup", "x"]):
        shown = CliRunner().invoke(main, [*command, "--home", str(tmp_path / "slip")])
        assert shown.exit_code == 7
        assert "no home at" in shown.stderr
    assert not (tmp_path / "slip").exists()


def test_a_bug_without_a_home_shows_its_traceback_only_when_asked(
    rushes: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").rmdir()
    broken(monkeypatch, ZeroDivisionError("by nought"))
    assert "Traceback" not in rushes("version").stderr
    assert "Traceback" in rushes("--verbose", "version").stderr


def test_ctrl_c_is_130(rushes: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, KeyboardInterrupt())
    shown = rushes("version")
    assert (shown.exit_code, shown.stderr.strip()) == (
        130,
        "stopped; nothing is lost. Run the same command again to continue",
    )
    last = json.loads(rushes("version", "--json").stdout)
    assert (last["message_type"], last["code"], last["resumable"]) == ("exit_error", 130, True)


def unread(folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    """A command whose reader has left before it says a word."""
    script = f"from rushes.surfaces.cli.main import main; main({[*args]})"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", script], stdout=write, stderr=subprocess.PIPE, cwd=folder, check=False)
    os.close(write)
    return done


@pytest.mark.parametrize("args", [["config", "show", "--home", "."], ["ls", "--json", "--home", "."], ["--help"]])
def test_a_reader_that_has_seen_enough_hears_nothing_more(tmp_path: Path, args: list[str]) -> None:
    done = unread(tmp_path, *args)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", [["run"], ["add"]])
def test_a_reader_that_leaves_changes_neither_the_work_nor_its_exit_code(
    tmp_path: Path, rushes: Invoke, command: list[str]
) -> None:
    (film,) = films(tmp_path, 1)
    alone = unread(tmp_path, "--home", "home", *command, str(film), "--json")
    assert (alone.returncode, alone.stderr) == (7 if command == ["run"] else 0, b"")
    (job,) = json.loads(rushes("jobs", "ls", "--json").stdout)["jobs"]
    assert job["state"] == ("failed" if command == ["run"] else "created")
    assert unread(tmp_path, "--home", "home", "add", str(film), "missing.mp4", "--json").returncode == 3


def test_a_worker_whose_reader_leaves_goes_on(tmp_path: Path, rushes: Invoke) -> None:
    rushes("add", *(str(film) for film in films(tmp_path, 1)))
    unread(tmp_path, "--home", "home", "worker", "--until-idle", "--slots", "1", "--json")
    assert json.loads(rushes("jobs", "ls", "--json").stdout)["jobs"][0]["state"] == "failed"


def test_who_follows_a_job_for_nobody_stops(tmp_path: Path, rushes: Invoke) -> None:
    rushes("add", *(str(film) for film in films(tmp_path, 1)))
    (job,) = json.loads(rushes("jobs", "ls", "--json").stdout)["jobs"]
    assert unread(tmp_path, "--home", "home", "jobs", "events", job["id"], "--follow").returncode == 0


def test_help_and_completion_load_no_video_library() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from rushes.surfaces.cli.main import main;"
        "assert [CliRunner().invoke(main, [a]).exit_code for a in ('--help', 'version')] == [0, 0];"
        "print([m for m in ('av', 'numpy', 'faster_whisper', 'rushes.library') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(rushes: Invoke, shell: str) -> None:
    shown = rushes("completion", shell)
    assert shown.exit_code == 0
    assert "_RUSHES_COMPLETE" in shown.output


def test_version_and_settings_say_what_is_in_force(rushes: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rushes("version").output.startswith("rushes 0.")
    monkeypatch.setenv("RUSHES_SLOTS", "3")
    settings = json.loads(rushes("config", "show", "--json").stdout)["settings"]
    assert settings["slots"] == {"value": 3, "origin": "RUSHES_SLOTS"}
    assert settings["owner"]["origin"] == "default"
    assert "RUSHES_SLOTS" in rushes("config", "show").stdout


def test_a_wrong_setting_is_told_and_not_thrown(rushes: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHES_SLOTS", "many")
    shown = rushes("ls")
    assert shown.exit_code == 2
    assert "RUSHES_SLOTS = 'many'" in shown.stderr


def test_an_interrupt_while_it_is_still_being_imported_leaves_no_trace() -> None:
    interrupted = (
        "import sys\n"
        "class Impatient:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'rushes.surfaces.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Impatient())\n"
        "from rushes.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")
