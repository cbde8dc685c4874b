"""Every transport keeps these promises; what only a server can break is below."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aws_kit
import postgres_kit
import pytest
import redis

from rushes.servers import valkey
from rushes.servers.process import Running
from rushes.transport.notify import Notify
from rushes.transport.poll import Poll
from rushes.transport.port import Transport
from rushes.transport.redis import RedisHints

LONG = 120.0  # seconds in which something must come; nothing here waits for so long
SHORT = 0.05  # seconds in which nothing comes
_fresh = itertools.count()


def _poll(_request: pytest.FixtureRequest) -> Transport:
    return Poll()


def _notify(request: pytest.FixtureRequest) -> Transport:
    db = postgres_kit.database(18, request.getfixturevalue("tmp_path"))
    return Notify(db, listen=postgres_kit.direct(18))


def _redis(request: pytest.FixtureRequest) -> Transport:
    return RedisHints(request.getfixturevalue("valkey_server").url, f"test{next(_fresh)}")


def _sqs(_request: pytest.FixtureRequest) -> Transport:
    return aws_kit.hints()


OPEN: dict[str, Callable[[pytest.FixtureRequest], Transport]] = {
    "poll": _poll,
    "notify": _notify,
    "redis": _redis,
    "sqs": _sqs,
}


@pytest.fixture(params=OPEN)
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    transport = OPEN[request.param](request)
    yield transport
    transport.close()


def _all_of(transport: Transport, lanes: list[str], *ids: str) -> set[str]:
    """What is hinted until all of these have come."""
    met: set[str] = set()
    end = time.monotonic() + LONG
    while not met.issuperset(ids) and time.monotonic() < end:
        met |= set(transport.wait(lanes, LONG))
    return met


def test_a_check_says_how_hints_come_and_takes_none(transport: Transport) -> None:
    transport.announce("cpu", ["a"])
    assert transport.check(["cpu", "gpu", "now"])
    assert _all_of(transport, ["cpu"], "a") == {"a"}


def test_an_announced_task_is_hinted_to_who_waits(transport: Transport) -> None:
    transport.announce("cpu", ["a", "b"])
    assert _all_of(transport, ["cpu"], "a", "b") == {"a", "b"}


def test_a_hint_ends_a_wait(transport: Transport) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_all_of, transport, ["cpu"], "a")
        transport.announce("cpu", ["a"])
        assert waiting.result(LONG) == {"a"}


def test_hints_of_other_lanes_are_left_for_others(transport: Transport) -> None:
    transport.announce("gpu", ["heavy"])
    transport.announce("now", ["clip"])
    assert _all_of(transport, ["cpu", "now"], "clip") == {"clip"}
    assert _all_of(transport, ["gpu"], "heavy") == {"heavy"}


def test_without_a_hint_a_wait_ends_by_itself(transport: Transport) -> None:
    assert transport.wait(["cpu"], SHORT) == ()


def test_announcing_nothing_is_no_hint(transport: Transport) -> None:
    transport.announce("cpu", [])
    assert transport.wait(["cpu"], SHORT) == ()


def test_a_wait_can_be_ended_from_the_same_process(transport: Transport) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(transport.wait, ["cpu"], LONG)
        while not waiting.done():  # a wake that comes before the wait may be missed
            transport.wake()
            threading.Event().wait(0.01)
        assert waiting.result() == ()


def test_many_hints_all_come_and_no_more_at_once_than_asked_for(transport: Transport) -> None:
    ids = [f"job.stage.{n:05d}" for n in range(50)]
    transport.announce("cpu", ids)
    assert len(transport.wait(["cpu"], LONG, 3)) <= 3
    transport.announce("cpu", ids)
    assert _all_of(transport, ["cpu"], *ids) == set(ids)


def test_without_time_only_what_is_there_is_taken(transport: Transport) -> None:
    assert transport.wait(["cpu"], 0) == ()


def test_what_was_taken_can_be_kept_and_settled(transport: Transport) -> None:
    transport.announce("cpu", ["a"])
    assert _all_of(transport, ["cpu"], "a") == {"a"}
    transport.keep(["a", "unknown"])
    transport.settle(["a", "unknown"])
    assert "a" not in transport.wait(["cpu"], SHORT)


def test_what_was_never_announced_may_be_missing_and_nothing_else_is(transport: Transport) -> None:
    transport.announce("cpu", ["a"])
    assert set(transport.missing("cpu", ["a", "b"])) <= {"b"}
    assert transport.missing("cpu", []) == ()


def test_every_thread_that_waits_is_woken(transport: Transport) -> None:
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(transport.wait, [lane], LONG) for lane in ("cpu", "gpu", "now")]
        while not all(w.done() for w in waiting):
            transport.wake()
            threading.Event().wait(0.01)
        assert {w.result() for w in waiting} == {()}


def test_closing_twice_hurts_nobody(transport: Transport) -> None:
    transport.close()
    transport.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Running]:
    running = valkey.start(tmp_path)
    yield running
    running.stop()


def test_a_task_announced_again_and_again_waits_once(valkey_server: Running) -> None:
    hints = RedisHints(valkey_server.url, f"test{next(_fresh)}")
    for _ in range(5):
        hints.announce("cpu", ["a", "a"])
    assert hints.wait(["cpu"], LONG) == ("a",)
    assert hints.wait(["cpu"], SHORT) == ()
    hints.announce("cpu", ["a"])
    assert hints.wait(["cpu"], LONG) == ("a",)


def test_two_processes_share_the_hints_between_them(valkey_server: Running) -> None:
    name = f"test{next(_fresh)}"
    one, two = RedisHints(valkey_server.url, name), RedisHints(valkey_server.url, name)
    one.announce("cpu", ["a"])
    assert two.wait(["cpu"], LONG) == ("a",)
    assert one.wait(["cpu"], SHORT) == ()


def test_a_worker_that_died_with_an_id_in_its_hands_hides_it_from_nobody(valkey_server: Running) -> None:
    name = f"test{next(_fresh)}"
    hints = RedisHints(valkey_server.url, name)
    hints.announce("cpu", ["a"])
    with redis.Redis.from_url(valkey_server.url) as dying:
        dying.lpop(f"{name}:cpu_jobs")
    hints.announce("cpu", ["a"])
    assert hints.wait(["cpu"], LONG) == ("a",)


def test_what_a_dead_worker_took_is_missing_although_others_wait(valkey_server: Running) -> None:
    name = f"test{next(_fresh)}"
    hints = RedisHints(valkey_server.url, name)
    hints.announce("cpu", [f"t{n}" for n in range(2500)])
    with redis.Redis.from_url(valkey_server.url) as dying:
        dying.lpop(f"{name}:cpu_jobs")
    assert hints.missing("cpu", ["t0", "t1", "t2499", "unknown"]) == ("t0", "unknown")
    hints.announce("cpu", ["t0"])
    assert hints.missing("cpu", ["t0"]) == ()


def test_a_list_that_is_never_empty_forgets_what_was_taken(valkey_server: Running) -> None:
    name = f"test{next(_fresh)}"
    hints = RedisHints(valkey_server.url, name)
    hints.announce("cpu", ["first", "second"])
    for n in range(40):
        hints.announce("cpu", [f"t{n}.{m}" for m in range(100)])
        assert len(hints.wait(["cpu"], LONG, 100)) == 100
    with redis.Redis.from_url(valkey_server.url) as someone:
        assert someone.hlen(f"{name}:cpu_jobs:positions") < 2000
    assert hints.missing("cpu", ["first", "t39.97", "t39.98", "t39.99"]) == ("first", "t39.97")
    hints.announce("cpu", ["t39.97", "t39.98", "t39.99", "first"])
    assert hints.wait(["cpu"], LONG) == ("t39.98", "t39.99", "t39.97", "first")


def test_losing_everything_only_loses_hints(valkey_server: Running) -> None:
    hints = RedisHints(valkey_server.url, f"test{next(_fresh)}")
    hints.announce("cpu", ["a", "b"])
    with redis.Redis.from_url(valkey_server.url) as someone:
        someone.flushall()
    assert hints.wait(["cpu"], SHORT) == ()
    hints.announce("cpu", ["a", "b"])
    assert hints.wait(["cpu"], LONG) == ("a", "b")


def test_a_server_that_is_away_raises_nothing_and_is_found_again(own_server: Running, tmp_path: Path) -> None:
    hints = RedisHints(own_server.url)
    hints.announce("cpu", ["a"])
    own_server.stop()
    hints.announce("cpu", ["b"])
    assert hints.missing("cpu", ["b"]) == ()
    assert hints.wait(["cpu"], SHORT) == hints.wait(["cpu"], 0) == ()
    hints.wake()
    again = valkey.start(tmp_path, own_server.port, own_server.secret)
    met: set[str] = set()
    end = time.monotonic() + LONG
    while not met and time.monotonic() < end:
        hints.announce("cpu", ["c"])
        met = set(hints.wait(["cpu"], 0.1))
    again.stop()
    assert met == {"c"}


def test_a_wait_can_be_ended_while_the_server_is_away(own_server: Running) -> None:
    hints = RedisHints(own_server.url)
    own_server.stop()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(hints.wait, ["cpu"], LONG)
        while not waiting.done():
            hints.wake()
            threading.Event().wait(0.01)
        assert waiting.result() == ()
