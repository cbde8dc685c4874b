"""The sandbox of a slot: layers of restrictions, applied before the first thread and permanent.

A slot reads foreign media with large libraries. What is in the scratch, the models and the interpreter is all that it
can reach; everything else it is handed by its worker, file by file. Each layer is used where the kernel allows it.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rushes.domain.errors import SandboxMissing
from rushes.worker.sandbox import landlock, limits, privileges, processes, seccomp
from rushes.worker.sandbox.kernel import LINUX

AUTO, REQUIRE, OFF = "auto", "require", "off"
MODES = (AUTO, REQUIRE, OFF)
ON = "on"
REQUIRED = (
    "limits",
    "network",
    "processes",
    "capabilities",
    "files",
    "calls",
)  # of `require`; the user matters only to root
Layers = Mapping[str, str]  # layer -> "on", or why it is not

_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo")
_MACHINE = (
    *("/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system", "/proc/self", "/proc/cpuinfo", "/proc/meminfo"),
    *("/proc/stat", "/proc/sys/vm/overcommit_memory", "/dev/urandom", "/dev/random", "/dev/zero"),
)


@dataclass(frozen=True, slots=True)
class Confinement:
    """What one slot may have: folders to read, programs to start, and how much of the machine."""

    mode: str = AUTO
    read: Sequence[str] = ()
    programs: Sequence[str] = ()
    address_bytes: int = 64 << 30
    file_bytes: int = 1 << 40
    cpu_seconds: int = 30 * 86_400

    @property
    def limits(self) -> tuple[int, int, int]:
        """Bytes of addresses, bytes of a file, seconds of the processor."""
        return self.address_bytes, self.file_bytes, self.cpu_seconds


@dataclass(slots=True)
class _Applied:
    """The layers as they are applied, one by one."""

    layers: dict[str, str] = field(default_factory=dict)

    def apply(self, layer: str, do: Callable[[], object]) -> bool:
        try:
            do()
        except (OSError, ValueError, KeyError) as e:
            self.layers[layer] = f"off: {getattr(e, 'strerror', None) or e}"
            return False
        self.layers[layer] = ON
        return True


def confine(given: Confinement, scratch: Path) -> Layers:
    """Take from this process what it does not need, as far as the kernel allows; which layers are on.

    Raises:
        SandboxMissing: a layer is not on, and every one is required.
    """
    if given.mode == OFF:
        return dict.fromkeys(("environment", *REQUIRED), "off: sandbox = off")
    if not LINUX:
        layers: Layers = dict.fromkeys(REQUIRED, "off: this is not Linux")
    else:
        layers = _confined(given, scratch)
    if given.mode == REQUIRE and (missing := [f"{name} ({layers[name]})" for name in REQUIRED if layers[name] != ON]):
        raise SandboxMissing(f"layers of the sandbox are missing: {', '.join(missing)}")
    return {"environment": ON, **layers}


def _confined(given: Confinement, scratch: Path) -> Layers:
    applied = _Applied()
    os.chdir(scratch)  # another user may not be able to enter the folders above it
    readable = [*_interpreter(), *given.read]
    left = applied.apply("network", privileges.leave_network)
    applied.apply("processes", processes.enter_namespace)
    if os.geteuid() == 0:
        applied.apply("user", lambda: _leave_root([*readable, *given.programs]))
    alone = not left and applied.apply("network", privileges.leave_network_as_user)
    if alone:
        applied.apply("processes", processes.enter_namespace)
    applied.apply("limits", lambda: limits.limit(*given.limits, alone=alone))
    applied.apply("capabilities", privileges.drop_capabilities)
    applied.apply("files", lambda: landlock.restrict(_access(readable, given.programs)))
    applied.apply("calls", seccomp.install)
    return applied.layers


def _leave_root(paths: Sequence[str]) -> None:
    if not privileges.can_live_as(privileges.NOBODY, paths):
        raise ValueError("another user cannot read the interpreter or the models")
    os.chown(".", privileges.NOBODY, privileges.NOBODY)
    privileges.become(privileges.NOBODY)


def _interpreter() -> list[str]:
    """Where Python and its packages are, also those that are links to another place."""
    places = (sys.prefix, sys.base_prefix, sys.pycache_prefix, *sys.path)
    found = {os.path.abspath(place) for place in places if place and Path(place).exists()}  # noqa: PTH100
    packages = [place for place in map(Path, sys.path) if place.name == "site-packages" and place.is_dir()]
    return sorted(found | {str(one.resolve()) for place in packages for one in place.iterdir() if one.is_symlink()})


def _access(readable: Sequence[str], programs: Sequence[str]) -> list[tuple[str, int]]:
    may_read = [(path, landlock.READ) for path in (*_LIBRARIES, *_MACHINE, *readable)]
    may_run = [(path, landlock.READ_FILE | landlock.EXECUTE) for path in programs]
    return [*may_read, *may_run, (".", landlock.WRITE), ("/dev/null", landlock.READ | landlock.WRITE_FILE)]
