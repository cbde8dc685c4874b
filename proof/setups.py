"""The set-ups that proofs and tests run on: servers started when asked for, a fresh corner of each for every run."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psycopg
from tests.servers_aws import KEY, SECRET, make_bucket, ministack

from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.servers import postgres, seaweed, valkey
from rushes.servers.process import Running

BUCKET = "rushes"
SETUPS = ("sqlite", "postgres", "postgres-16", "postgres+s3", "postgres+valkey+s3", "aws", "bucket", "bucket-ministack")


@dataclass
class Servers:
    """Every server that a set-up may need, on loopback."""

    folder: Path
    running: list[Running] = field(default_factory=list)
    databases: Iterator[int] = field(default_factory=lambda: itertools.cycle(range(16)))  # that a Valkey has

    def settings(self, setup: str, name: str) -> str:
        """The rushes.toml of a home on that set-up, in a corner that nobody else has."""
        lines: dict[str, str] = {}
        if setup.startswith("postgres"):
            server = self.postgres_16 if setup == "postgres-16" else self.postgres
            lines["store"] = fresh_database(server.url, name)
        if "valkey" in setup:
            lines["hints"] = f"{self.valkey.url.rpartition('/')[0]}/{next(self.databases)}"
        if setup.startswith("bucket"):
            lines["store"] = f"s3://{BUCKET}/{name}"
        if setup.endswith("s3") or setup.startswith("bucket"):
            lines |= {"blobs": f"s3://{BUCKET}/{name}", "s3_endpoint": self._s3(setup).url}
        if setup == "aws":
            lines |= {"store": f"dynamodb://{name}", "aws_endpoint": self.aws.url}
            lines |= {"blobs": f"s3://{BUCKET}/{name}", "s3_endpoint": self.aws.url}
        if "blobs" in lines:
            lines |= {"s3_key": KEY, "s3_secret": SECRET}
        shared = "shared = true\n" if lines and "blobs" not in lines else ""
        return "".join(f'{key} = "{value}"\n' for key, value in lines.items()) + shared

    def films(self, setup: str, paths: Sequence[Path]) -> tuple[str, ...]:
        """Where a run on that set-up finds these films: in the bucket, if its home is one, under the same path."""
        if not setup.startswith("bucket"):
            return tuple(map(str, paths))
        store = connect(BucketLocation(BUCKET, "", self._s3(setup).url, KEY, SECRET))
        for path in paths:
            store.put(str(path).lstrip("/"), path)
        return tuple(f"s3://{BUCKET}{path}" for path in paths)

    @cached_property
    def postgres(self) -> Running:
        """PostgreSQL 18."""
        return self._kept(postgres.start(self.folder / "postgres"))

    @cached_property
    def postgres_16(self) -> Running:
        """PostgreSQL 16."""
        return self._kept(postgres.start(self.folder / "postgres-16", version=16))

    @cached_property
    def valkey(self) -> Running:
        """Valkey."""
        return self._kept(valkey.start(self.folder / "valkey"))

    @cached_property
    def seaweed(self) -> Running:
        """An S3."""
        return self._kept(seaweed.start(self.folder / "seaweed", BUCKET, KEY, SECRET))

    @cached_property
    def aws(self) -> Running:
        """S3, SQS and DynamoDB."""
        running = self._kept(ministack(self.folder / "ministack"))
        make_bucket(running.url, BUCKET)
        return running

    def stop(self) -> None:
        """End them all; nothing of theirs is kept."""
        for server in self.running:
            server.process.kill()
            server.process.wait()

    def _s3(self, setup: str) -> Running:
        return self.aws if setup.endswith("ministack") else self.seaweed

    def _kept(self, server: Running) -> Running:
        self.running.append(server)
        return server


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Servers in a folder, ended at the end."""
    found = Servers(folder)
    try:
        yield found
    finally:
        found.stop()


def fresh_database(url: str, name: str) -> str:
    """A new database on a server; its address."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f'create database "{name}"'.encode())
    return f"{url.rpartition('/')[0]}/{name}"
