"""Fixtures of the contract suites: one store per test, on every backend there is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_kit import OPEN, Backend

from rushes.ledger.port import Ledger


@pytest.fixture(params=OPEN)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    backend = Backend(request.param, tmp_path)
    yield backend
    backend.close()


@pytest.fixture
def ledger(backend: Backend) -> Ledger:
    return backend.open()
