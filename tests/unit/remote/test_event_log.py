"""What a worker of one's own tells reaches the server once and in order, whatever is away meanwhile."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from rushes.domain.errors import ForgedToken, LeaseLost, NoRoom, Refused, StoreAway
from rushes.files import write_whole
from rushes.library import Library
from rushes.library.job_events import EventPublisher, WorkEvent, watch
from rushes.library.queues import QueuedJob
from rushes.remote import event_log
from rushes.remote.event_log import EventLog
from rushes.surfaces.rpc.server import RpcServer


@dataclass
class Site:
    """A server that goes and comes back at the same address, with a job that is being worked on."""

    library: Library
    taken: QueuedJob
    folder: Path
    servers: list[RpcServer] = field(default_factory=list)
    channels: list[Any] = field(default_factory=list)
    address: str = "127.0.0.1:0"

    def start(self) -> None:
        self.servers.append(RpcServer(self.library, self.address))
        self.servers[-1].start()
        self.address = f"127.0.0.1:{self.servers[-1].port}"

    def stop(self) -> None:
        while self.servers:
            self.servers.pop().stop()

    def log(self, token: str = "") -> EventLog:
        options = [("grpc.max_reconnect_backoff_ms", 100), ("grpc.initial_reconnect_backoff_ms", 100)]
        self.channels.append(grpc.insecure_channel(self.address, options))
        return EventLog(self.channels[-1], token or self.taken.token, self.folder / "events")

    def told(self) -> list[tuple[int, str, bytes]]:
        found = watch(self.library.home, self.taken.job).look()
        return [(event.sequence, event.type.value.rpartition("_")[2], event.data) for event in found]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(event_log, "PAUSES", (0.05, 0.1))
    with Library(tmp_path / "home", options={"queues": ("default", "the test")}) as library:
        library.queues.enqueue("default", "one", b"")
        (taken,) = library.queues.dequeue("default", 1, 600)
        site = Site(library, taken, tmp_path)
        site.start()
        yield site
        site.stop()
        for channel in site.channels:
            channel.close()


def test_what_is_told_is_kept_in_order_and_the_file_goes(site: Site) -> None:
    with site.log() as log:
        log.start(b"go")
        log.output(b"x" * (event_log.DATA_BYTES + 1))
        log.error(b"odd")
        log.end(b"0")
        assert log.close()
    whole = site.told()
    assert [(n, type) for n, type, _ in whole] == [
        (1, "start"), (2, "data"), (3, "data"), (4, "error"), (5, "end")
    ]  # fmt: skip
    assert (whole[2][2], whole[3][2]) == (b"x", b"odd")
    assert not (site.folder / "events").exists()


def test_output_survives_a_server_that_is_away(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    publish = EventPublisher.publish

    def counted(publisher: EventPublisher, token: str, events: Iterable[WorkEvent]) -> int:
        sizes.append(publish(publisher, token, events))
        return sizes[-1]

    monkeypatch.setattr(EventPublisher, "publish", counted)
    log = site.log()
    log.start()
    site.stop()
    for n in range(60):
        log.output(b"%d" % n)
    log.error(b"it does not hide the error itself")
    with pytest.raises(StoreAway):
        log.end(seconds=0.05)
    site.start()
    assert log.close()
    told = site.told()
    assert [n for n, _, _ in told] == list(range(1, 64))
    assert [data for _, type, data in told if type == "data"] == [b"%d" % n for n in range(60)]
    assert max(sizes) == 25


def test_output_survives_a_worker_that_is_killed(site: Site) -> None:
    killed = site.log()
    killed.start()
    site.stop()
    killed.output(b"one")
    killed.output(b"two")
    with (site.folder / "events").open("ab") as file:
        file.write(b"CAES")  # it was just writing
    _kill(killed)
    again = site.log()
    again.output(b"three")
    _kill(again)
    site.start()
    with site.log() as last:
        last.end()
    assert [data for _, type, data in site.told() if type == "data"] == [b"one", b"two", b"three"]
    assert [n for n, _, _ in site.told()] == [1, 2, 3, 4, 5]


def _kill(log: EventLog) -> None:
    """Its thread and memory are gone, its file is not."""
    log._over = True
    log._thread.join(60)
    log._file.close()


def test_without_a_server_only_what_is_critical_fails(site: Site) -> None:
    site.stop()
    with site.log() as log:
        log.output(b"a line")
        log.error(b"an error")
        with pytest.raises(StoreAway):
            log.start(seconds=0.05)
        assert not log.close(0.0)
    assert len((site.folder / "events").read_bytes().splitlines()) == 3


def test_whoever_lost_the_lease_is_told_with_the_next_critical_event(site: Site) -> None:
    with site.log() as log:
        log.start()
        site.library.queues.give_back(site.taken.token)
        log.output(b"late")
        with pytest.raises(LeaseLost):
            log.end()
        log.output(b"later still")
        assert isinstance(log.refused, LeaseLost)
    with site.log("made up") as forged, pytest.raises(ForgedToken):
        forged.start()


def test_a_long_outage_costs_the_oldest_output_and_no_memory(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "KEPT", 10)
    monkeypatch.setattr(event_log, "FILE_BYTES", 2000)
    site.stop()
    log = site.log()
    with pytest.raises(StoreAway):
        log.start(seconds=0.01)
    for n in range(100):
        log.output(b"%d" % n * 20)
    assert log.dropped == 91
    assert (site.folder / "events").stat().st_size < 5000
    site.start()
    assert log.close()
    assert [(n, type) for n, type, _ in site.told()] == [(1, "start"), *((n, "data") for n in range(93, 102))]


def test_a_server_whose_disk_is_full_is_told_again_once_there_is_room(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, refused = site.library.home.ledger, threading.Event()

    def full(*_what: Any) -> None:
        refused.set()
        raise NoRoom("no disk space to write the ledger")

    with site.log() as log:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(type(ledger), "log", full)
            log.output(b"a line")
            assert refused.wait(60)
        log.end()
    assert [data for _, _, data in site.told()] == [b"a line", b""]


def test_nothing_waits_for_a_log_that_was_closed(site: Site) -> None:
    log = site.log()
    log.close()
    with pytest.raises(StoreAway):
        log.end(seconds=3600)


def test_whoever_closed_the_channel_is_told_with_the_next_critical_event(site: Site) -> None:
    log = site.log()
    log.start()
    site.channels.pop().close()
    log.output(b"unsent")
    with pytest.raises(Refused, match="closed channel"):
        log.end()
    assert not log.close(0.0), "its file stays"


def test_a_full_disk_stops_no_worker(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with site.log() as log:
        monkeypatch.setattr(log, "_write", _full)
        log.start()
        log.output(b"a line")
        log.end()
    assert len(site.told()) == 3


def test_a_disk_that_is_really_full_stops_no_worker(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "FILE_BYTES", 100)
    with site.log() as log:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(event_log, "write_whole", _full)  # when the file is written anew
            for n in range(5):
                log.output(b"%d" % n * 50)
        log._file.close()
        log._file = Path("/dev/full").open("ab")  # noqa: SIM115
        log.start()
        log.output(b"a line")
        assert log.close()
    assert len(site.told()) == 7


def test_a_kill_while_the_file_is_written_anew_gives_no_number_twice(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[int]] = []

    def write(target: Path, data: bytes) -> None:
        write_whole(target, data)
        written.append([event.sequence for event in event_log._read(target)])

    monkeypatch.setattr(event_log, "FILE_BYTES", 100)
    monkeypatch.setattr(event_log, "write_whole", write)
    with site.log() as log:
        for n in range(1, 6):
            log.output(b"x" * 60)
            assert log._wait_until_sent(n, 60)
    assert [numbers[-1:] for numbers in written] == [[], [2], [3], [4], [5]], "the last number is in it"


def _full(*_what: Any, **_more: Any) -> None:
    raise OSError(28, "No space left on device")
