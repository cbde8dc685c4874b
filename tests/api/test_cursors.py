"""Cursors are signed with a secret of the home: nothing made up reaches a store."""

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rushes.domain.errors import Refused
from rushes.library.access.signing import Signer
from rushes.surfaces.http.schemas import seal, unseal
from tests.api.kit import begin, serving

REQUEST: Any = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(signer=Signer(b"k" * 32))))


def test_every_bit_that_is_flipped_is_refused(home: Path) -> None:
    with serving(home) as server:
        for n in range(3):
            begin(server.ledger, f"job{n}")
        cursor = server.get("/api/v1/jobs?limit=1")["cursor"].encode()
        for at in range(8 * len(cursor)):
            flipped = bytearray(cursor)
            flipped[at // 8] ^= 1 << at % 8
            no = server.http.get("/api/v1/jobs", params={"limit": 1, "cursor": bytes(flipped)})
            assert no.status_code in (400, 422), flipped
            assert "cursor" in no.text
        assert server.get("/api/v1/jobs", params={"limit": 1, "cursor": cursor.decode()})["items"]


@settings(max_examples=50, deadline=None)
@given(st.text(min_size=1), st.text(), st.text())
def test_a_cursor_is_read_as_it_was_and_only_in_its_own_list(cursor: str, of: str, other: str) -> None:
    sealed = seal(REQUEST, cursor, of)
    assert unseal(REQUEST, sealed, of) == cursor
    if of.encode("utf-8", "replace") != other.encode("utf-8", "replace"):
        with pytest.raises(Refused):
            unseal(REQUEST, sealed, other)


@settings(max_examples=50, deadline=None)
@given(st.one_of(st.text(min_size=1), st.binary(min_size=1).map(lambda b: base64.urlsafe_b64encode(b).decode())))
def test_whatever_is_made_up_is_refused(made_up: str) -> None:
    with pytest.raises(Refused):
        unseal(REQUEST, made_up, "jobs")


def test_servers_of_one_home_understand_each_other_and_others_do_not(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as first, serving(tmp_path / "one") as second, serving(tmp_path / "two") as other:
        for server in (first, other):
            for n in range(2):
                begin(server.ledger, f"job{n}")
        cursor = first.get("/api/v1/jobs?limit=1")["cursor"]
        assert second.get(f"/api/v1/jobs?limit=1&cursor={cursor}")["items"]
        other.get(f"/api/v1/jobs?limit=1&cursor={cursor}", 400)
        assert other.get("/api/v1/settings") is not None
