"""What comes by NOTIFY: anybody may send on the channel, and whoever listens goes on."""

from unittest.mock import Mock

import psycopg
import pytest

from rushes.postgres.store import Postgres
from rushes.transport.notify import Notify


@pytest.mark.parametrize("payload", ["", "hello", "[1, 2]", "5", '{"a": 1}', '["x", "cpu", 5]', "[" * 3000])
def test_words_that_are_no_hint_are_passed_over_and_the_next_hint_comes(
    payload: str, caplog: pytest.LogCaptureFixture
) -> None:
    hints = Notify(Mock(spec=Postgres), listen="")
    server = Mock(spec=psycopg.Connection)
    sent = [payload, '["another", "cpu", ["a"]]']
    server.notifies.return_value = [psycopg.Notify("rushes", words, 1) for words in sent]
    server.fileno.return_value = hints._out
    hints._poke()
    hints._listen_once(server)
    assert hints.wait(["cpu"], 0) == ("a",)
    assert "that is not a hint" in caplog.text
    hints.close()
