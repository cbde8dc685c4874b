"""Fixtures of the contract suites: one store per test, on every backend there is."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import aws_kit
import pytest
import remote_kit
from bucket_machines import LosesAnswers, Machine, Machines, fresh
from ledger_kit import OPEN, Backend
from obstore.store import MemoryStore

from rushes.bucket.conditional import ConditionalBucket
from rushes.bucket.location import BucketLocation
from rushes.ledger.port import Ledger


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What moto, the second opinion on AWS, is known not to be able to."""
    items[:] = [i for i in items if "[remote" not in i.name or "attempt_blobs" in i.nodeid or _is_for_remote(i)]
    for item in items if aws_kit.MOTO else ():
        for part, why in aws_kit.MOTO_GAPS.items():
            if part in item.name and ("dynamodb" in item.nodeid or "sqs" in item.nodeid):
                item.add_marker(pytest.mark.skip(reason=f"moto: {why}"))


def _is_for_remote(item: pytest.Item) -> bool:
    """A remote ledger has only the verbs of a worker, and its tokens stand for fences."""
    return "test_ledger_leases" in item.nodeid and not any(part in item.name for part in remote_kit.BY_TOKEN)


@pytest.fixture(params=OPEN)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    backend = Backend(request.param, tmp_path)
    yield backend
    backend.close()


@pytest.fixture
def ledger(backend: Backend) -> Ledger:
    return backend.open()


@pytest.fixture(params=["memory", "ministack", "seaweed"])
def film_bucket(request: pytest.FixtureRequest) -> ConditionalBucket:
    if request.param == "memory":
        return ConditionalBucket(MemoryStore())
    location: BucketLocation = request.getfixturevalue(f"{request.param}_s3")
    return ConditionalBucket.at(replace(location, prefix=f"films{next(fresh)}"))


@pytest.fixture(params=["ministack", "seaweed"])
def s3_server(request: pytest.FixtureRequest) -> BucketLocation:
    """Where faults are put on the way to it."""
    location: BucketLocation = request.getfixturevalue(f"{request.param}_s3")
    return location


@pytest.fixture
def machine(film_bucket: ConditionalBucket, tmp_path: Path) -> Iterator[Machines]:
    made: list[Machine] = []

    def make(name: str) -> Machine:
        made.append(Machine(film_bucket, tmp_path / name, name))
        return made[-1]

    yield make
    for one in made:
        if one.disk.exists():
            one.ledger.close()


@pytest.fixture
def deaf(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(LosesAnswers(), tmp_path / "deaf", "deaf")
    yield machine
    machine.ledger.close()
