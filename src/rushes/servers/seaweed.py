"""SeaweedFS from its wheel: a real S3 on loopback, for a fleet on one machine and for tests.

S3 wants the key. Its parts talk to each other on seven more ports, which take nobody without the certificate that is
made for one start and kept in a folder of its own.
"""

import json
import signal
import subprocess
import sysconfig
from datetime import timedelta
from pathlib import Path

from obstore.exceptions import BaseError
from obstore.store import S3Store

from rushes.domain.errors import Refused
from rushes.files import write_whole
from rushes.servers.process import Running, free_port, private_folder
from rushes.servers.process import start as start_process

_PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
          "filer.port", "filer.port.grpc", "s3.port.grpc")  # fmt: skip
_PARTS = ("master", "volume", "filer", "s3", "client")
_CERTIFICATE = ("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "3650", "-subj", "/CN=rushes",
                "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem")  # fmt: skip


def start(folder: Path, bucket: str, key: str, secret: str, port: int = 0) -> Running:
    """Start an S3 on loopback that has this bucket and knows this key; data and log are in the folder.

    Raises:
        Refused: it does not start.
    """
    _secure(private_folder(folder))
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
        "filer.localSocket": "filer.sock",  # in its working folder: the whole path may be too long for a socket
        "s3.localSocket": "s3.sock",
        "s3.port": port,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.config": identities,
        "disableHttp": "true",  # of master and filer, which nothing needs
        **dict(zip(_PORTS, (inside for inside in iter(free_port, None) if inside != port), strict=False)),
    }
    return [weed, "-logtostderr", "server", "-s3", *(f"-{name}={value}" for name, value in options.items())]


def _secure(folder: Path) -> None:
    """Make a certificate and the settings by which every part shows it and asks for it.

    Raises:
        Refused: openssl is missing or failed.
    """
    (folder / "key.pem").unlink(missing_ok=True)  # created again, readable only by us
    try:
        subprocess.run(_CERTIFICATE, cwd=folder, check=True, capture_output=True, umask=0o077)
    except (OSError, subprocess.SubprocessError) as e:
        raise Refused(f"openssl cannot create a certificate: {e}", "Install openssl 1.1.1 or newer.") from e
    cert, key = json.dumps(str(folder / "cert.pem")), json.dumps(str(folder / "key.pem"))
    shown = f"ca = {cert}\ncert = {cert}\nkey = {key}\n"
    tables = [f"[grpc]\nca = {cert}\n", *(f"[{way}.{part}]\n{shown}" for part in _PARTS for way in ("grpc", "https"))]
    write_whole(folder / "security.toml", "".join([*tables, "enabled = true\n"]).encode(), mode=0o600)  # https.client's


def _identities(folder: Path, key: str, secret: str) -> Path:
    file = folder / "identities.json"
    credentials = [{"accessKey": key, "secretKey": secret}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "rushes", "credentials": credentials, "actions": actions}
    write_whole(file, json.dumps({"identities": [identity]}).encode(), mode=0o600)
    return file


def _answers(store: S3Store) -> bool:
    """Whether a write goes through; the first one makes the bucket."""
    try:
        store.put(".alive", b"")
        store.delete(".alive")
    except (BaseError, OSError):
        return False
    return True
