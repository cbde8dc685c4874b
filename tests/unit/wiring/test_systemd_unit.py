"""The systemd unit: what the documents fix, and a grace that ends before systemd's patience does."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[3] / "infra" / "systemd" / "rushes-worker.service"


@pytest.fixture
def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read(UNIT)
    return unit["Service"]


def test_a_worker_is_drained_and_started_again(service: configparser.SectionProxy) -> None:
    fixed = [service[k] for k in ("Restart", "RestartSec", "KillSignal", "TimeoutStopSec")]
    assert fixed == ["always", "10", "SIGTERM", "120"]
    environment = dict(pair.split("=") for pair in service["Environment"].split())
    assert int(environment["RUSHES_DRAIN_SECONDS"]) + 10 < 120
    assert "rushes worker" in service["ExecStart"]


def test_a_worker_has_nothing_that_it_does_not_use(service: configparser.SectionProxy) -> None:
    closed = (
        "NoNewPrivileges",
        "PrivateTmp",
        "PrivateDevices",
        "ProtectHome",
        "ProtectKernelModules",
        "RestrictSUIDSGID",
    )
    assert {service[name] for name in closed} == {"yes"}
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == ""
    assert service["RestrictAddressFamilies"].split() == ["AF_UNIX", "AF_INET", "AF_INET6"]
    assert service["SystemCallFilter"].startswith("@system-service ")
    assert service["MemoryMax"].endswith("%")
    assert service["OOMPolicy"] == "continue", "one slot may die of it, the worker may not"


def test_slots_can_still_be_confined(service: configparser.SectionProxy) -> None:
    assert {"user", "net", "mnt"} <= set(service["RestrictNamespaces"].split())
    calls = {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}
    assert calls <= set(service["SystemCallFilter"].split())
    assert "MemoryDenyWriteExecute" not in service, "models are compiled while they run"
    assert not {"ProtectProc", "ProcSubset", "PrivatePIDs"} & set(service), (
        "whether another worker lives is seen in /proc"
    )


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/rushes", "/bin/true"))
    said = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert unit.name not in said.stderr
    judged = ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(unit)]  # 87 without any of it
    said = subprocess.run(judged, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout
