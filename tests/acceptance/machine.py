"""A machine as the guides for operators assume it, made in one folder: its /etc, its systemctl, its accounts.

Commands of a guide run literally, with the places and addresses that they name replaced by those of the test.
"""

import configparser
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```([a-z]+) run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTHING = "exit 0"
AS_USER = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
NGINX_KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
SHIMS = {"useradd": NOTHING, "chown": NOTHING, "runuser": AS_USER}


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of the blocks of a guide (or `../runbooks/...`) that are marked `run`, in order."""
    return FENCE.findall((ROOT / "docs" / "guides" / page).read_text("utf-8"))


@dataclass
class Machine:
    """Runs commands of a guide; `names` are what stands for its placeholders here."""

    folder: Path
    names: Mapping[str, str]
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bin = self.folder / "bin"
        self._bin.mkdir(parents=True)
        for place in ("systemd/system", "nginx/conf.d", "ssl/certs", "ssl/private"):
            (self.folder / "etc" / place).mkdir(parents=True)
        for name, text in SHIMS.items():
            self._program(name, f"#!/bin/sh\n{text}\n")
        for name in ("systemctl", "nginx", "aws", "sqlite3"):
            self._program(name, f'#!/bin/sh\nexec {sys.executable} -m tests.acceptance.machine {name} "$@"\n')
        path = f"{self._bin}:{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin:/sbin"
        here, names = str(self.folder), json.dumps(self._all_names)
        self.env |= {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": here, "MACHINE": here, "MACHINE_NAMES": names}

    @property
    def _all_names(self) -> dict[str, str]:
        places = {"/etc/": f"{self.folder}/etc/", "/var/lib/rushes": f"{self.folder}/var/lib/rushes"}
        return {**self.names, **places, "/usr/local/bin/rushes": str(Path(sys.executable).with_name("rushes"))}

    def run(self, text: str) -> str:
        """The output of some commands, which must succeed."""
        argv = ["sh", "-eu", "-c", translated(text, self._all_names)]
        done = subprocess.run(argv, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def stop(self) -> None:
        """Stop what systemctl started, as it would; answers nothing, but all of it must end."""
        left = [psutil.Process(pid) for pid in started(self.folder) if psutil.pid_exists(pid)]
        for process in left:
            process.send_signal(signal.SIGTERM)
        _, alive = psutil.wait_procs(left, timeout=120)
        assert not alive

    def log(self, unit: str) -> str:
        """What a service wrote."""
        file = self.folder / f"{unit}.log"
        return file.read_text() if file.exists() else ""

    def _program(self, name: str, text: str) -> None:
        (self._bin / name).write_text(text)
        (self._bin / name).chmod(0o755)


def translated(text: str, names: Mapping[str, str]) -> str:
    """The same with the names of this machine."""
    for name, here in names.items():
        text = text.replace(name, here)
    return text


def started(folder: Path) -> list[int]:
    """The processes that systemctl started."""
    return [int(file.read_text()) for file in folder.glob("*.pid")]


def systemctl(words: list[str]) -> None:
    """enable --now UNIT...: a service is started, a timer fires at once; restart; nginx is reloaded."""
    if words == ["reload", "nginx"]:
        _run(["nginx", "-g", "daemon off;"], "nginx", dict(os.environ))
        number = Path(os.environ["MACHINE"]) / "nginx.number"  # written when it listens; `nginx -t` leaves it empty
        while not (number.exists() and number.stat().st_size):
            time.sleep(0.02)
    if words[0] == "restart":
        for name in words[1:]:
            _stop(name)
        words = ["enable", "--now", *words[1:]]
    if words[:2] != ["enable", "--now"]:
        return
    for name in words[2:]:
        unit = f"{name.removesuffix('.timer')}.service".replace(".service.service", ".service")
        if name.endswith(".timer"):
            assert (_units() / name).exists(), name
        process = _start(unit)
        if name.endswith(".timer"):
            assert process.wait() == 0, f"{unit} failed"


def _units() -> Path:
    return Path(os.environ["MACHINE"]) / "etc" / "systemd" / "system"


def _start(name: str) -> subprocess.Popen[bytes]:
    names = json.loads(os.environ["MACHINE_NAMES"])
    unit = configparser.ConfigParser(interpolation=None, strict=False)  # what a drop-in says again counts
    for file in (_units() / name, *sorted((_units() / f"{name}.d").glob("*.conf"))):
        unit.read_string(translated(file.read_text(), names))
    service = unit["Service"]
    secrets = Path(service["EnvironmentFile"])
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600, "others can read the secrets"
    env = {"PATH": os.environ["PATH"], "RUSHES_MODELS": os.environ["RUSHES_MODELS"]}
    env |= dict(pair.split("=", 1) for pair in service.get("Environment", "").split())
    env |= dict(line.split("=", 1) for line in secrets.read_text().splitlines() if line)
    return _run(shlex.split(service["ExecStart"]), name, env)


def _run(argv: list[str], name: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
    folder = Path(os.environ["MACHINE"])
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
    (folder / f"{name}.pid").write_text(str(process.pid))
    return process


def _stop(name: str) -> None:
    running = psutil.Process(int((Path(os.environ["MACHINE"]) / f"{name}.service.pid").read_text()))
    running.terminate()
    running.wait(60)


def nginx(words: list[str]) -> None:
    """The real one, with the site that was installed and nothing else."""
    folder, names = Path(os.environ["MACHINE"]), json.loads(os.environ["MACHINE_NAMES"])
    site = translated((folder / "etc" / "nginx" / "conf.d" / "rushes.conf").read_text(), names)
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in NGINX_KINDS)
    config = folder / "etc" / "nginx" / "nginx.conf"
    config.write_text(f"pid {folder}/nginx.number; events {{}} http {{ access_log off; {paths} {site} }}")
    real = shutil.which("nginx", path="/usr/sbin:/usr/bin") or Path(sys.prefix) / "nginx" / "usr" / "sbin" / "nginx"
    os.execv(real, ["nginx", "-p", str(folder), "-c", str(config), "-e", str(folder / "nginx.errors"), *words])


def aws(words: list[str]) -> None:
    """`aws SERVICE OPERATION --name value ... [FILE]` with JSON values, for the emulator; `aws s3 sync`."""
    import boto3  # type: ignore[import-untyped]  # noqa: PLC0415 - only where a guide needs it

    service, operation, *options = words
    client = boto3.client(service.replace("s3api", "s3"), endpoint_url=os.environ["MACHINE_AWS"])
    if (service, operation) == ("s3", "sync"):
        _sync(client, *options)
        return
    file = options.pop() if operation == "get-object" else ""
    request: dict[str, object] = {}
    while options:
        name = "".join(part.capitalize() for part in options.pop(0).removeprefix("--").split("-"))
        if options and not options[0].startswith("--"):
            request[name] = _value(options.pop(0))
        else:  # a flag
            request[name.removeprefix("No")] = not name.startswith("No")
    if operation == "wait":
        return
    answer = getattr(client, operation.replace("-", "_"))(**request)
    answer.pop("ResponseMetadata", None)
    if file:
        Path(file).write_bytes(answer.pop("Body").read())
    print(json.dumps(answer, default=str))


def _sync(client: Any, *addresses: str) -> None:
    (here, below), (there, new) = (address.removeprefix("s3://").split("/", 1) for address in addresses)
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=here, Prefix=f"{below}/"):
        for found in page.get("Contents", ()):
            key = found["Key"]
            named = new + key.removeprefix(below)
            client.copy_object(Bucket=there, Key=named, CopySource={"Bucket": here, "Key": key})


def sqlite(words: list[str]) -> None:
    """`sqlite3 -readonly FILE STATEMENT`, which not every machine has."""
    option, file, statement = words
    assert option == "-readonly"
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
        for row in db.execute(statement):
            print("|".join("" if value is None else str(value) for value in row))


def _value(text: str) -> object:
    if text.startswith("file://"):
        text = Path(text.removeprefix("file://")).read_text()
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    {"systemctl": systemctl, "nginx": nginx, "aws": aws, "sqlite3": sqlite}[sys.argv[1]](sys.argv[2:])
