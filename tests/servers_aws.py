"""AWS as an emulator on loopback: S3, SQS and DynamoDB for tests."""

import os
import signal
import sys
import urllib.request
from pathlib import Path

from rushes.servers.process import Running, free_port, new_secret, start

KEY, SECRET = "test", new_secret()


def ministack(folder: Path) -> Running:
    """Start ministack; it forgets everything when it is stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    url = f"http://127.0.0.1:{(port := free_port())}"
    env = {
        **os.environ,
        "BIND_HOST": "127.0.0.1",  # all interfaces otherwise
        "GATEWAY_PORT": str(port),
        "SERVICES": "s3,sqs,dynamodb",
        "AWS_ACCESS_KEY_ID": KEY,  # it verifies signed addresses, and nothing else
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "IOT_MTLS_ENABLED": "0",  # further ports, and a slower start
        "SFTP_ENABLED": "0",
        "PYTHONWARNINGS": "ignore",
    }
    argv = [str(Path(sys.executable).with_name("ministack"))]
    answers = lambda: _answers(f"{url}/_ministack/health")  # noqa: E731
    # Nothing of it is kept, and while somebody waits for a message a clean end takes seconds.
    return start(argv, url, folder / "ministack.log", answers, env, ends_by=signal.SIGKILL)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def make_bucket(url: str, bucket: str) -> None:
    """Make a bucket on an S3 that checks no signatures; one that is there stays."""
    urllib.request.urlopen(urllib.request.Request(f"{url}/{bucket}", method="PUT"), timeout=30).close()


def moto(folder: Path) -> Running:
    """Start moto, the second opinion."""
    folder.mkdir(parents=True, exist_ok=True)
    url = f"http://127.0.0.1:{(port := free_port())}"
    argv = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)]
    return start(argv, url, folder / "moto.log", lambda: _answers(f"{url}/moto-api/"), dict(os.environ))
