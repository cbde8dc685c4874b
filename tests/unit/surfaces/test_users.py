"""Accounts and the audit log in the terminal; passwords come from a pipe or a prompt, never from the command line."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rushes.library import Library
from rushes.library.access.accounts import Accounts
from rushes.surfaces.cli.main import main

PASSWORD = "correct horse battery"
Invoke = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def rushes(home: Path) -> Invoke:
    def go(*args: str, stdin: str = "") -> Result:
        return CliRunner().invoke(main, ["--home", str(home), *args], input=stdin)

    return go


def enters(home: Path, name: str, password: str) -> str:
    with Library(home) as library:
        return Accounts(library.home).enter(name, password, "10.0.0.1")


def test_a_lock_out_is_repaired_from_the_terminal(rushes: Invoke, home: Path) -> None:
    assert "no accounts" in rushes("users", "ls").stderr
    assert "as an admin" in rushes("users", "add", "ada", stdin=f"{PASSWORD}\n").stdout
    assert "admin" not in rushes("users", "add", "bert", stdin=f"{PASSWORD}\n").stdout
    assert enters(home, "ada", PASSWORD)
    rows = [json.loads(row) for row in rushes("users", "ls", "--json").stdout.splitlines()]
    assert [(r["name"], r["admin"], r["sessions"]) for r in rows] == [("ada", True, 1), ("bert", False, 0)]
    assert "10.0.0.1" in rushes("users", "sessions", "ada").stdout
    assert "logged out" in rushes("users", "password", "ada", stdin="another horse battery\r\n").stdout
    assert rushes("users", "sessions", "--json").stdout == ""
    assert not enters(home, "ada", PASSWORD)
    assert enters(home, "ada", "another horse battery")
    assert "1 browser of ada logged out" in rushes("users", "sessions", "ada", "--end").stdout
    assert "no longer" in rushes("users", "remove", "ada", "--yes").stdout
    assert not enters(home, "ada", "another horse battery")


@pytest.mark.parametrize(
    ("words", "stdin", "code", "said"),
    [(["add", "ada"], "short\n", 2, "at least 10 characters"), (["add", "ada"], "", 2, "at least 10 characters"),
     (["add", "A da!"], PASSWORD, 2, "a-z, 0-9"), (["add", "token"], PASSWORD, 2, "a-z, 0-9"),
     (["add", "there"], PASSWORD, 2, "rushes users password there"), (["password", "nobody"], PASSWORD, 6, "users ls"),
     (["remove", "there"], "", 2, "--yes"), (["remove", "nobody", "--yes"], "", 6, "users ls"),
     (["sessions", "--end"], "", 2, "name of a user"), (["add", "ada", PASSWORD], "", 2, "unexpected")],
)  # fmt: skip
def test_what_cannot_be_done_says_why(rushes: Invoke, words: list[str], stdin: str, code: int, said: str) -> None:
    rushes("users", "add", "there", stdin=PASSWORD)
    done = rushes("users", *words, stdin=stdin)
    assert done.exit_code == code
    assert said in done.stderr


def test_a_prompt_asks_twice_and_shows_nothing(home: Path) -> None:
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "rushes", "--home", str(home), "users", "add", "ada"]
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        shown = b""
        while shown.count(b":") < 1:
            shown += os.read(ours, 1000)
        os.write(ours, f"{PASSWORD}\n".encode())
        while shown.count(b":") < 2:
            shown += os.read(ours, 1000)
        os.write(ours, f"{PASSWORD}\n".encode())
        while b"can log in" not in shown:
            shown += os.read(ours, 1000)
        assert process.wait(60) == 0
    os.close(ours)
    assert PASSWORD.encode() not in shown
    assert enters(home, "ada", PASSWORD)


def test_the_audit_log_tells_what_was_done_here(rushes: Invoke) -> None:
    assert "no entries" in rushes("audit").stderr
    rushes("users", "add", "ada", stdin=PASSWORD)
    rushes("users", "remove", "ada", "--yes")
    told = [json.loads(row) for row in rushes("audit", "--json", "--since", "1h").stdout.splitlines()]
    assert [(e["action"], e["target"], e["address"]) for e in told] == [
        ("account removed", "ada", "terminal"),
        ("account added", "ada", "terminal"),
    ]
    assert all(e["who"] and e["at"] for e in told)
    assert rushes("audit", "--json", "--since", "2999-01-01").stdout == ""
    assert rushes("audit", "--json", "--limit", "1").stdout.count("\n") == 1
    assert "For example: 24h" in rushes("audit", "--since", "sometime").stderr


def test_each_command_teaches(rushes: Invoke) -> None:
    for name in ("ls", "add", "password", "remove", "sessions"):
        assert f"rushes users {name}" in rushes("users", name, "--help").stdout
    assert "never appears on the command line" in " ".join(rushes("users", "add", "--help").stdout.split())
