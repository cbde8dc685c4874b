"""Servers that several suites share: each started once, when it is first asked for."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from proof.setups import Servers, servers

from rushes.bucket.location import BucketLocation
from rushes.servers import seaweed, valkey
from rushes.servers.process import Running
from tests.servers_aws import KEY, SECRET, make_bucket, ministack

# How fast a machine is decides nothing. scripts/test asks for the same cases every time, unless it is given a SEED.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("any speed"), derandomize=True, database=None)
settings.load_profile("any speed")


@pytest.fixture(scope="session", autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The settings of whoever runs the tests are neither read nor written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))
        yield


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = valkey.start(tmp_path_factory.mktemp("valkey"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def aws_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = ministack(tmp_path_factory.mktemp("ministack"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def ministack_s3(aws_server: Running) -> BucketLocation:
    make_bucket(aws_server.url, "rushes")
    return BucketLocation("rushes", endpoint=aws_server.url, key=KEY, secret=SECRET, patience=60.0)


@pytest.fixture(scope="session")
def seaweed_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketLocation]:
    running = seaweed.start(tmp_path_factory.mktemp("seaweed"), "rushes", KEY, SECRET)
    yield BucketLocation("rushes", endpoint=running.url, key=KEY, secret=SECRET, patience=60.0)
    running.stop()


@pytest.fixture(scope="session")
def all_servers() -> Iterator[Servers]:
    """The servers of every set-up, each started when a home on it is asked for."""
    with TemporaryDirectory() as folder, servers(Path(folder)) as found:
        yield found
