"""The engine of a process that uses the network: any number of threads may ask it."""

import threading
from pathlib import Path
from typing import Any

import pytest

from rushes.domain.errors import Refused
from rushes.engines.http import InferenceServices, InferenceSession
from rushes.home import SEARCH
from rushes.library import Library
from rushes.settings import Settings
from rushes.wiring import stage_services
from rushes.wiring.engines import open_engine, services_of
from rushes.wiring.stage_services import StageServices
from tests.unit.engines.test_remote import serving


def test_searches_at_the_same_time_do_not_share_a_connection() -> None:
    both = threading.Barrier(2)

    def together(_number: int) -> str:
        both.wait(20)
        return "well"

    found: list[tuple[int, ...]] = []
    with serving(together) as server:
        engine = open_engine(Settings(inference=server.url), SEARCH, 20)
        askers = [threading.Thread(target=lambda: found.append(engine.embed("m", ["a"]).shape)) for _ in range(2)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join(20)
    assert found == [(1, 64)] * 2
    assert len(server.asked) == 2


def test_a_stage_that_does_not_exist_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHES_STAGE_INFERENCE", "transcibe=http://ml:8001 search=local")
    with Library(tmp_path / "home") as library, pytest.raises(Refused, match="unknown stages: transcibe"):
        library.recipes()


def test_slots_that_ask_at_once_share_the_bound_of_their_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, sessions = (
        StageServices(Settings(inference="http://127.0.0.1:9"), tmp_path),
        list[InferenceSession | None](),
    )

    def made(*args: Any) -> InferenceServices:
        """Another slot asks just now."""
        monkeypatch.setattr(stage_services, "services_of", real)
        sessions.append(services.session("objects"))
        return real(*args)

    real = services_of
    monkeypatch.setattr(stage_services, "services_of", made)
    sessions.append(services.session("objects"))
    one, other = sessions
    assert one
    assert other
    assert one._services is other._services
