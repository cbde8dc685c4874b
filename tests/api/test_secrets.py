"""What servers and commands say of themselves holds no secret, also when a store is away and says why."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from click.testing import CliRunner

from rushes.domain.errors import StoreAway
from rushes.surfaces.cli.main import main
from tests.api.kit import serving

SECRET = "Zq7p%40ss%2Fw0rd-xW9"
SETTINGS = {
    "hints": f"redis://:{SECRET}@127.0.0.1:9/0",
    "webhook": f"http://127.0.0.1:9/in/{SECRET}",
    "webhook_secret": SECRET,
    "s3_secret": SECRET,
    "s3_endpoint": f"http://key:{SECRET}@127.0.0.1:9",
    "storage_events": f"http://127.0.0.1:9/queue?X-Amz-Security-Token={SECRET}",
}


def parts(text: str) -> list[str]:
    return [part for part in ("Zq7", "w0rd", "xW9") if part in text]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(0o700)
    (home / "rushes.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in SETTINGS.items()))
    return home


def broken(*_: object, **__: object) -> Any:
    raise StoreAway(f"no answer from postgres://rushes:{SECRET}@db/films")


def test_pages_and_probes_show_no_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(home) as server:
        settings = server.http.get("/settings").text
        assert "127.0.0.1" in settings
        monkeypatch.setattr(server.library.home.records, "get_many", broken)
        ready = server.http.get("/readyz")
        assert ready.status_code == 503
        assert "no answer from postgres://rushes:***@db/films" in ready.text
        problem = server.http.get("/api/v1/uploads/up_x")
        assert (problem.status_code, "***" in problem.text) == (503, True)
        assert parts(settings + ready.text + problem.text) == []


@pytest.mark.parametrize("command", ["config show", "doctor", "config show --json", "doctor --json"])
def test_commands_show_no_secret(command: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    shown = CliRunner().invoke(main, ["--home", str(home), *command.split()])
    assert "***" in shown.output
    assert parts(shown.output) == []


def test_a_bug_report_has_no_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise RuntimeError(f"could not parse {SETTINGS['hints']}, nor {unquote(SECRET)}") from ValueError(SECRET)

    monkeypatch.setattr("rushes.engines.models.store.ModelStore.pull", bug)
    for args in (["models", "pull"], ["models", "pull", "--verbose"], ["models", "pull", "--json"]):
        shown = CliRunner().invoke(main, ["--home", str(home), *args])
        assert shown.exit_code == 1
        assert parts(shown.output) == []
    (report, *_) = (home / "logs").glob("bug-*.txt")
    assert "RuntimeError" in report.read_text()
    assert parts(report.read_text()) == []
