"""Task tokens: nobody makes one, changes one, or uses one that is over."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushes.domain.errors import ExpiredToken, ForeignToken, ForgedToken
from rushes.library import Library
from rushes.library.access.task_tokens import TaskToken, TokenKey, TokenKeys, TokenSigner

TOKEN = TaskToken("me", "job_a", "job_a.task", "default", "remote.1", 3, 2_000)
KEY, OTHER = TokenKey("k1", b"1" * 32), TokenKey("k2", b"2" * 32)
SIGNER = TokenSigner([KEY, OTHER], lambda: 1_000.0)
TEXT = SIGNER.sign(TOKEN)


def test_what_was_signed_is_read() -> None:
    assert SIGNER.read(TEXT, "me", "default") == TOKEN


@pytest.mark.parametrize("at", range(len(TEXT)))
def test_no_bit_of_a_token_can_be_flipped(at: int) -> None:
    for bit in range(8):
        changed = TEXT[:at] + chr(ord(TEXT[at]) ^ 1 << bit) + TEXT[at + 1 :]
        with pytest.raises(ForgedToken):
            SIGNER.read(changed, "me")


@given(st.text(max_size=600))
def test_no_text_is_a_token(text: str) -> None:
    with pytest.raises(ForgedToken):
        SIGNER.read(text, "me")


@given(st.builds(TaskToken, *[st.text(max_size=40)] * 5, st.integers(0, 2**60), st.integers(1_001, 2**40)))
def test_every_token_is_read_as_it_was_signed_and_by_nobody_elses_key(token: TaskToken) -> None:
    text = SIGNER.sign(token)
    assert SIGNER.read(text, token.owner) == token
    with pytest.raises(ForgedToken):
        TokenSigner([TokenKey("k1", b"3" * 32)]).read(text, token.owner)


@pytest.mark.parametrize("changed", [TEXT + "=", TEXT + "A", TEXT[:-1], f" {TEXT}", TEXT.lower(), f"{TEXT}\n", ""])
def test_another_spelling_is_a_forgery(changed: str) -> None:
    with pytest.raises(ForgedToken):
        SIGNER.read(changed, "me")


def test_a_token_that_is_over_is_expired() -> None:
    late = replace(SIGNER, clock=lambda: 2_000.0)
    with pytest.raises(ExpiredToken):
        late.read(TEXT, "me")


@pytest.mark.parametrize(("owner", "queue", "job"), [("bob", "", ""), ("me", "priority", ""), ("me", "", "job_b")])
def test_a_token_of_another_job_is_foreign(owner: str, queue: str, job: str) -> None:
    with pytest.raises(ForeignToken):
        SIGNER.read(TEXT, owner, queue, job)


def test_a_key_cannot_sign_under_the_id_of_another() -> None:
    forged = TokenSigner([replace(OTHER, id="k1")]).sign(TOKEN)
    with pytest.raises(ForgedToken):
        SIGNER.read(forged, "me")


def test_after_a_rotation_the_key_before_is_accepted_and_after_two_it_is_not(tmp_path: Path) -> None:
    with Library(tmp_path / "home") as library:
        keys = TokenKeys(library.home)
        live = replace(TOKEN, expires=2**40)
        first = keys.signer().sign(live)
        assert TokenKeys(library.home).signer().read(first, "me") == live, "another server has the same key"
        keys.rotate()
        assert keys.signer().read(first, "me") == live
        second = keys.signer().sign(live)
        assert second != first
        keys.rotate()
        assert keys.signer().read(second, "me") == live
        with pytest.raises(ForgedToken):
            keys.signer().read(first, "me")
