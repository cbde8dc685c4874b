"""The layers of a slot's sandbox, each alone; tests/acceptance/test_sandbox.py tries to get out of all of them."""

import errno
import importlib
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from rushes.worker.sandbox import privileges, seccomp
from rushes.worker.sandbox.environment import reduced
from rushes.worker.sandbox.kernel import LINUX

pytestmark = pytest.mark.skipif(not LINUX, reason="layers are those of Linux")

OLD_KERNEL = [sys.executable, str(Path(__file__).with_name("old_kernel.py")), sys.executable, "-m", "rushes"]
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
THREAD, NEW_USER, TIOCSTI, TIOCGWINSZ = 0x3D0F00, 0x10000000, 0x5412, 0x5413


def decided(machine: str, call: int, *args: int, architecture: int = 0) -> int:
    """What the filter says of a call, by an interpreter of its few instructions."""
    given = struct.pack("=iIQ6Q", call, architecture or ARCHITECTURES[machine], 0, *(*args, *[0] * 6)[:6])
    program = [struct.unpack("=HBBI", step) for step in seccomp._program(machine)]
    held, at = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            held = int(struct.unpack_from("=I", given, value)[0])
        else:
            found = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            at += if_true if found else if_false


@pytest.mark.parametrize(
    ("machine", "calls"),
    [
        ("x86_64", {"socket": 41, "ptrace": 101, "mount": 165, "keyctl": 250, "bpf": 321, "read": 0, "mmap": 9}),
        ("aarch64", {"socket": 198, "ptrace": 117, "mount": 40, "keyctl": 219, "bpf": 280, "read": 63, "mmap": 222}),
    ],
)
def test_the_filter_refuses_what_it_names_and_nothing_else(machine: str, calls: dict[str, int]) -> None:
    refused = {name for name, number in calls.items() if decided(machine, number) == ERRNO | errno.EPERM}
    assert refused == calls.keys() - {"read", "mmap"}
    assert decided(machine, calls["read"]) == decided(machine, calls["mmap"]) == ALLOW
    assert decided(machine, 435) == decided(machine, 425) == ERRNO | errno.ENOSYS  # clone3, io_uring_setup


@pytest.mark.parametrize(("machine", "clone", "ioctl"), [("x86_64", 56, 16), ("aarch64", 220, 29)])
def test_threads_may_be_started_and_namespaces_not(machine: str, clone: int, ioctl: int) -> None:
    assert decided(machine, clone, THREAD) == ALLOW
    assert decided(machine, clone, THREAD | NEW_USER) == ERRNO | errno.EPERM
    assert decided(machine, ioctl, 1, TIOCGWINSZ) == ALLOW
    assert decided(machine, ioctl, 1, TIOCSTI) == ERRNO | errno.EPERM


def test_calls_of_another_architecture_are_not_there() -> None:
    assert decided("x86_64", 359, architecture=0x40000003) == ERRNO | errno.ENOSYS  # socket of i386
    assert decided("x86_64", 0x40000000 | 41) == ERRNO | errno.ENOSYS  # socket of x32


def test_the_environment_of_a_slot_is_a_list(tmp_path: Path) -> None:
    given = {"PATH": "/bin", "LC_ALL": "C", "AWS_PROFILE": "me", "RUSHES_TOKEN": "t", "PYTHONPATH": f"src{os.pathsep}"}
    found = reduced(given, tmp_path)
    assert found.keys() == {"PATH", "LC_ALL", "PYTHONPATH", "HOME", "TMPDIR", "XDG_CACHE_HOME"}
    assert found["PYTHONPATH"] == str(Path("src").absolute())
    assert found["HOME"] == found["TMPDIR"] == str(tmp_path)


def test_what_chooses_the_rounding_of_sums_is_the_same_in_a_slot(tmp_path: Path) -> None:
    given = {"OPENBLAS_CORETYPE": "Haswell", "CT2_FORCE_CPU_ISA": "GENERIC", "MKL_CBWR": "COMPATIBLE"}
    assert reduced(given, tmp_path).items() >= given.items()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_becomes_a_user_who_can_read_what_the_slot_needs(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert privileges.can_live_as(privileges.NOBODY, ["/usr", "/etc/passwd"])
    assert not privileges.can_live_as(privileges.NOBODY, ["/usr", closed])
    assert os.geteuid() == 0


def on_old_kernel(*command: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*OLD_KERNEL, *command], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


def test_the_doctor_names_the_layers_that_a_kernel_does_not_allow(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    assert on_old_kernel(*home, "init").returncode == 0
    (line,) = [line for line in on_old_kernel(*home, "doctor").stdout.splitlines() if " sandbox " in line]
    assert line.startswith("ok")
    assert "files (Function not implemented)" in line
    assert "network (Function not implemented)" in line
    assert "calls" in line.partition("off:")[0]


def test_work_that_requires_every_layer_is_refused_without_one(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    assert on_old_kernel(*home, "init").returncode == 0
    done = on_old_kernel(*home, "worker", RUSHES_SANDBOX="require")
    assert done.returncode == 2, done.stderr
    assert "layers of the sandbox are missing: network (Function not implemented)" in done.stderr
    assert "SandboxMissing" in done.stderr


SRC = str(Path(seccomp.__file__).parents[3])
PYTHON = "/usr/bin/python3"  # one that every user can read, if there is one
LOOK = f"""
import os, sys
from pathlib import Path
from rushes.worker.sandbox import Confinement, confine
if sys.argv[1:] == ["user"]:
    os.setgroups([]); os.setresgid(*[{privileges.NOBODY}] * 3); os.setresuid(*[{privileges.NOBODY}] * 3)
layers = confine(Confinement(mode="require"), Path())
Path("made").write_text("here")
refused = 0
for path in ("/etc/passwd", "/tmp/mine"):
    try:
        open(path, "a").close()
    except PermissionError:
        refused += 1
print(os.getuid(), refused, layers.get("user", "none"), Path("/proc/self/net/dev").read_text().count(":"))
"""


def is_usable(python: str) -> bool:
    if os.geteuid() != 0 or not Path(python).exists():
        return False
    new = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    return subprocess.run(new, check=False).returncode == 0 and privileges.can_live_as(privileges.NOBODY, [SRC])


@pytest.mark.parametrize(("who", "layer"), [("root", "on"), ("user", "none")])
@pytest.mark.skipif(not is_usable(PYTHON), reason="there is no Python that another user can read, or this is not root")
def test_root_and_a_user_without_rights_both_get_every_layer(tmp_path: Path, who: str, layer: str) -> None:
    """The folder above the scratch is closed to the user that root becomes."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    if who == "user":
        os.chown(scratch, privileges.NOBODY, privileges.NOBODY)
    argv = [PYTHON, "-P", "-c", LOOK, who]
    done = subprocess.run(argv, cwd=scratch, env={"PYTHONPATH": SRC}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(privileges.NOBODY), "2", layer, "1"], done.stderr
    assert (scratch / "made").stat().st_uid == privileges.NOBODY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_the_burglar_takes_away_what_it_could_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "burglar"))
    burglar = importlib.import_module("rushes_burglar")
    try:
        burglar.mount(tmp_path)
    except PermissionError:
        pytest.skip("this root may not mount")
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
