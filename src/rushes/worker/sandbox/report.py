"""Which sandbox layers this machine supports: found once, by a process that tries them all."""

import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from rushes.worker.sandbox import OFF, ON, REQUIRED, Confinement, Layers, confine

_SECONDS = 30.0


@cache
def layers_here(read: tuple[str, ...] = ()) -> Layers:
    """Each layer, and "on" or why it is not; `read` are folders that another user than root must be able to read."""
    command = [sys.executable, "-P", "-m", "rushes.worker.sandbox", *read]
    how: Any = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(command, cwd=scratch, timeout=_SECONDS, check=False, **how)
    if done.returncode:
        return dict.fromkeys(REQUIRED, f"off: {done.stderr.strip()[-200:] or done.returncode}")
    return dict(json.loads(done.stdout))


def layers_of(mode: str, read: tuple[str, ...] = ()) -> Layers:
    """The layers of a slot with this setting."""
    return confine(Confinement(OFF), Path()) if mode == OFF else layers_here(read)


def missing_layers() -> tuple[str, ...]:
    """The layers that `require` wants and this machine does not have, each with its reason."""
    layers = layers_here()
    return tuple(_named(name, layers[name]) for name in REQUIRED if layers[name] != ON)


def described(mode: str, read: tuple[str, ...] = ()) -> str:
    """Which layers are on, and which are not, in words."""
    if mode == OFF:
        return "off (sandbox = off): slots have the worker's environment, its network and its files"
    layers = layers_here(read)
    on = ", ".join(name for name, state in layers.items() if state == ON)
    off = ", ".join(_named(name, state) for name, state in layers.items() if state != ON)
    return f"{on or 'no layer'}; off: {off}" if off else on


def _named(layer: str, state: str) -> str:
    return f"{layer} ({state.removeprefix('off: ')})"
