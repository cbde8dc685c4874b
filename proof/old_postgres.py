"""The oldest PostgreSQL that is promised (15, Debian's), directly and behind pgBouncer in transaction mode.

Both are started by this program in a temporary folder on loopback; the contract suites are run against them.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from rushes.files import write_whole
from rushes.servers.process import Running, as_user, free_port, new_secret, start

ROOT = Path(__file__).resolve().parent.parent
BIN = Path("/usr/lib/postgresql/15/bin")
BOUNCER = Path("/usr/sbin/pgbouncer")
PROGRAMS = {"postgresql-15": BIN / "postgres", "pgbouncer": BOUNCER}
SUITES = ("ledger", "ledger_leases", "ledger_steering", "records", "index", "transport")
POOLED = """[databases]
postgres = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
"""


def main() -> int:
    """Install if that is possible, run everything twice, print the counts; 1 if anything did not hold."""
    missing = [package for package, program in PROGRAMS.items() if not program.exists()]
    if missing and not install(missing):
        print(f"missing: {', '.join(missing)}; install with: apt-get install {' '.join(missing)}")
        return 1
    with tempfile.TemporaryDirectory(prefix="old-postgres-") as name, servers(Path(name)) as (direct, pooled):
        print(f"{version(direct)}; {bouncer()}")
        ways = {
            "direct": {"RUSHES_TEST_POSTGRES": direct},
            "behind pgBouncer": {"RUSHES_TEST_POSTGRES": direct, "RUSHES_TEST_PGBOUNCER": pooled},
        }
        held = [tried(way, env) for way, env in ways.items()]
        return int(not all(held))


def install(packages: list[str]) -> bool:
    """Install with apt, without starting anything; false where that is not possible."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}  # no service is started
    argv = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    return subprocess.run(argv, env=quiet, stdout=subprocess.DEVNULL, check=False).returncode == 0


@contextmanager
def servers(folder: Path) -> Iterator[tuple[str, str]]:
    """PostgreSQL, and pgBouncer in front of it; their addresses."""
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None  # both refuse root
    if user is not None:
        os.chown(folder, user, -1)
    server = serve(folder, user)
    try:
        pooled = pool(folder, server, user)
        try:
            yield server.url, pooled.url
        finally:
            pooled.stop()
    finally:
        server.stop()


def serve(folder: Path, user: int | None) -> Running:
    """A cluster of its own."""
    data, port, secret = folder / "data", free_port(), new_secret()
    argv = [str(BIN / "initdb"), "-D", str(data), "-U", "postgres", "--encoding=UTF8", "--locale=C"]
    argv += ["--auth=scram-sha-256", f"--pwfile={private_file(folder / 'password', secret, user)}"]
    subprocess.run(argv, check=True, capture_output=True, cwd=folder, **as_user(user))
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "port": port,
        "max_connections": 200,
        "fsync": "off",  # no power cut is tried here
    }
    options = [f"--{key}={value}" for key, value in settings.items()]
    url = f"postgresql://postgres:{secret}@127.0.0.1:{port}/postgres"
    argv = [str(BIN / "postgres"), "-D", str(data), *options]
    return start(argv, url, folder / "postgres.log", lambda: answers(url), user=user)


def private_file(file: Path, text: str, user: int | None) -> Path:
    """A file that the servers' user alone can read."""
    write_whole(file, text.encode(), mode=0o600)
    if user is not None:
        os.chown(file, user, -1)
    return file


def pool(folder: Path, server: Running, user: int | None) -> Running:
    """A pgBouncer in transaction mode."""
    port, config = free_port(), folder / "pgbouncer.ini"
    users = private_file(folder / "users.txt", f'"postgres" "{server.secret}"\n', user)
    config.write_text(POOLED.format(server=server.port, port=port, users=users))
    url = f"postgresql://postgres:{server.secret}@127.0.0.1:{port}/postgres"
    return start([str(BOUNCER), str(config)], url, folder / "pgbouncer.log", lambda: answers(url), user=user)


def answers(url: str) -> bool:
    """Whether a server is there."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def version(url: str) -> str:
    """What the server says it is."""
    with psycopg.connect(url) as db:
        row = db.execute("SHOW server_version").fetchone()
    return f"PostgreSQL {row[0] if row else '?'}"


def bouncer() -> str:
    """What pgBouncer says it is."""
    told = subprocess.run([BOUNCER, "--version"], capture_output=True, text=True, check=False).stdout
    return told.splitlines()[0] if told else "pgBouncer"


def tried(way: str, env: Mapping[str, str]) -> bool:
    """Run the contract suites one way and print what came of it."""
    files = [f"tests/contract/test_{suite}.py" for suite in SUITES]
    argv = [sys.executable, "-m", "pytest", "-q", "--no-header", "--durations=0", *files, "-k", "postgres18 or notify"]
    ran = subprocess.run(argv, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    print(f"{way:<18} {counts(ran.stdout)}", flush=True)
    if ran.returncode:
        print("\n".join(line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))))
    return ran.returncode == 0


def counts(output: str) -> str:
    """How many cases passed and failed."""
    found = re.findall(r"(\d+) (passed|failed|error|errors|skipped)", output)
    return ", ".join(f"{n} {what}" for n, what in found) or output[-300:]


if __name__ == "__main__":
    sys.exit(main())
