"""The systemd units: what the documents fix, and a grace that ends before systemd's patience does."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from rushes.domain.errors import Refused, RushesError, StoreAway, StoreMissing, StoreRefuses, Terminated, WrongHome
from rushes.surfaces.cli.main import main

FOLDER = Path(__file__).resolve().parents[3] / "infra" / "systemd"
UNIT = FOLDER / "rushes-worker.service"
SERVICES = sorted(FOLDER.glob("*.service"))
CLOSED = ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "ProtectKernelModules", "RestrictSUIDSGID")


def section(unit: Path) -> configparser.SectionProxy:
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.read(unit)
    return parsed["Service"]


@pytest.fixture
def service() -> configparser.SectionProxy:
    return section(UNIT)


def test_a_worker_is_drained_and_started_again(service: configparser.SectionProxy) -> None:
    fixed = [service[k] for k in ("Restart", "RestartSec", "KillSignal", "TimeoutStopSec")]
    assert fixed == ["always", "10", "SIGTERM", "120"]
    environment = dict(pair.split("=") for pair in service["Environment"].split())
    assert int(environment["RUSHES_DRAIN_SECONDS"]) + 10 < 120
    assert "rushes worker" in service["ExecStart"]


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_what_does_not_get_better_by_trying_is_not_started_again(unit: Path) -> None:
    service = section(unit)
    if service["Type"] == "oneshot":
        assert unit.with_suffix(".timer").exists()
        return
    never = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert never == {Refused.exit_code, WrongHome.exit_code}
    assert not never & {StoreAway.exit_code, StoreRefuses.exit_code, StoreMissing.exit_code, RushesError.exit_code}
    assert service["SuccessExitStatus"] == str(Terminated.exit_code)


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_a_process_has_nothing_that_it_does_not_use(unit: Path) -> None:
    service = section(unit)
    assert {service[name] for name in CLOSED} == {"yes"}
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == ""
    assert service["RestrictAddressFamilies"].split() == ["AF_UNIX", "AF_INET", "AF_INET6"]
    assert service["SystemCallFilter"].split()[0] == "@system-service"
    assert service["EnvironmentFile"] == "/etc/rushes/rushes.env"


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_the_command_of_a_unit_exists(unit: Path) -> None:
    words = section(unit)["ExecStart"].split()
    found = CliRunner().invoke(main, [*words[1:], "--help"])
    assert (words[0], found.exit_code) == ("/usr/local/bin/rushes", 0), found.output
    assert all(word in found.output for word in words[2:] if word.startswith("--"))


def test_one_slot_may_die_of_memory_and_the_worker_may_not(service: configparser.SectionProxy) -> None:
    assert service["MemoryMax"].endswith("%")
    assert service["OOMPolicy"] == "continue"


def test_slots_can_still_be_confined(service: configparser.SectionProxy) -> None:
    assert {"user", "net", "mnt"} <= set(service["RestrictNamespaces"].split())
    calls = {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}
    assert calls <= set(service["SystemCallFilter"].split())
    assert "MemoryDenyWriteExecute" not in service, "models are compiled while they run"
    assert not {"ProtectProc", "ProcSubset", "PrivatePIDs"} & set(service), (
        "whether another worker lives is seen in /proc"
    )


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize("file", SERVICES, ids=lambda unit: unit.stem)
def test_systemd_understands_the_unit(tmp_path: Path, file: Path) -> None:
    unit = tmp_path / file.name
    unit.write_text(file.read_text().replace("/usr/local/bin/rushes", "/bin/true"))
    said = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert unit.name not in said.stderr
    judged = ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(unit)]  # 87 without any of it
    said = subprocess.run(judged, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout
