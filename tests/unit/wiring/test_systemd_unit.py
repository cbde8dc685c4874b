"""The systemd unit: what the documents fix, and a grace that ends before systemd's patience does."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[3] / "infra" / "systemd" / "rushes-worker.service"


def test_a_worker_is_drained_and_started_again() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read(UNIT)
    service = unit["Service"]
    fixed = [service[k] for k in ("Restart", "RestartSec", "KillSignal", "TimeoutStopSec")]
    assert fixed == ["always", "10", "SIGTERM", "120"]
    name, _, grace = service["Environment"].partition("=")
    assert name == "RUSHES_DRAIN_SECONDS"
    assert int(grace) + 10 < 120
    assert "rushes worker" in service["ExecStart"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/rushes", "/bin/true"))
    said = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert unit.name not in said.stderr
