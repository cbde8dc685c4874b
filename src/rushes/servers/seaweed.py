"""SeaweedFS from its wheel: a real S3 on loopback, for a fleet on one machine and for tests."""

import json
import os
import signal
import sysconfig
from datetime import timedelta
from pathlib import Path

from obstore.exceptions import BaseError
from obstore.store import S3Store

from rushes.servers.process import Running, free_port
from rushes.servers.process import start as start_process

_PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
          "filer.port", "filer.port.grpc", "s3.port.grpc")  # fmt: skip


def start(folder: Path, bucket: str, key: str, secret: str, port: int = 0) -> Running:
    """Start an S3 on loopback that has this bucket and knows this key; data and log are in the folder.

    Raises:
        Refused: it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    store = S3Store(
        bucket,
        endpoint=url,
        region="us-east-1",
        access_key_id=key,
        secret_access_key=secret,
        client_options={"allow_http": True, "timeout": timedelta(seconds=5)},
        retry_config={"max_retries": 0},
    )
    argv = _argv(folder, port, _identities(folder, key, secret))
    # A clean end takes it 15 s; what it has answered for is in its files, and none of 180 was lost by three kills.
    return start_process(argv, url, folder / "seaweed.log", lambda: _answers(store), ends_by=signal.SIGKILL)


def _argv(folder: Path, port: int, identities: Path) -> list[str]:
    weed = str(Path(sysconfig.get_path("scripts")) / "weed")
    options = {
        "dir": folder,
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "volume.max": 100,  # with 30 it ran out after a few buckets and answered 500
        "volume.preStopSeconds": 0,
        "master.volumeSizeLimitMB": 1024,
        "master.telemetry": "false",
        "filer.localSocket": folder / "filer.sock",
        "s3.localSocket": folder / "s3.sock",
        "s3.port": port,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.config": identities,
        **{name: free_port() for name in _PORTS},
    }
    return [weed, "-logtostderr", "server", "-s3", *(f"-{name}={value}" for name, value in options.items())]


def _identities(folder: Path, key: str, secret: str) -> Path:
    file = folder / "identities.json"
    credentials = [{"accessKey": key, "secretKey": secret}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        json.dump({"identities": [{"name": "rushes", "credentials": credentials, "actions": actions}]}, f)
    return file


def _answers(store: S3Store) -> bool:
    """Whether a write goes through; the first one makes the bucket."""
    try:
        store.put(".alive", b"")
        store.delete(".alive")
    except (BaseError, OSError):
        return False
    return True
