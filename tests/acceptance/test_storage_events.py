"""Storage events joined to watching: doubled, reordered, dropped or poisoned, each film is taken in once."""

import json
import random
import secrets
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rushes.aws.client import Service
from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import WrongHome
from rushes.domain.job import JobState
from rushes.domain.keys import task_id
from rushes.domain.task import TaskState
from rushes.jobs.originals import original
from rushes.library import JobRequest, Library
from rushes.uploads.expected import expect_upload
from rushes.wiring.workers import worker
from tests.acceptance.conftest import wait_for
from tests.servers_aws import KEY, SECRET, make_bucket

SCAN_LOOKS = 3
PROBE = JobRequest(only=("probe",))
ODD = "films/a b+ü%20&'(1).mp4"


@dataclass(frozen=True, slots=True)
class Site:
    """A bucket that tells a queue of what is created in it, and a home that listens."""

    home: Path
    bucket: BucketLocation
    sqs: Service
    queue: str

    def put(self, key: str, data: bytes | Path = b"film") -> None:
        """Put a file there; its event has been told when this returns."""
        before = self.left
        connect(self.bucket).put(key, data)
        wait_for(lambda: self.left > before, f"nothing was told of {key}")

    def say(self, body: str) -> None:
        self.sqs.ask("send_message", QueueUrl=self.queue, MessageBody=body)

    def taken(self) -> list[str]:
        """Every message that waits, taken out of the queue."""
        bodies: list[str] = []
        while found := self.sqs.ask("receive_message", QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages"):
            bodies += [m["Body"] for m in found]
            for m in found:
                self.sqs.ask("delete_message", QueueUrl=self.queue, ReceiptHandle=m["ReceiptHandle"])
        return bodies

    @property
    def left(self) -> int:
        """Messages of the queue, seen or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.ask("get_queue_attributes", QueueUrl=self.queue, AttributeNames=names)["Attributes"]
        return sum(map(int, found.values()))

    def watch(self, library: Library, *between: Callable[[], Any], looks: int = 0, below: str = "/films") -> list[str]:
        """Look, do what is to be done between two looks, look again; the names of what was taken in anew."""
        steps: Iterator[Callable[[], Any]] = iter([*between, *[lambda: None] * looks])

        def pause(_seconds: float) -> bool:
            step = next(steps, None)
            if step:
                step()
            return step is not None

        found = library.watch([f"{self.bucket.url}{below}"], PROBE, pause=pause)
        return [added.path.removeprefix(f"{self.bucket.url}/") for added in found if added.created]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scans come after a few looks, and a queue without messages is not waited for."""
    monkeypatch.setattr("rushes.library.watching.watch.SCAN_LOOKS", SCAN_LOOKS)  # a function has its name
    monkeypatch.setattr("rushes.sources.event_queue._WAIT_SECONDS", 0)


@pytest.fixture
def site(ministack_s3: BucketLocation, tmp_path: Path) -> Site:
    endpoint, name = ministack_s3.endpoint, f"events-{secrets.token_hex(4)}"
    sqs = Service("sqs", endpoint, "us-east-1", KEY, SECRET)
    queue = sqs.ask("create_queue", QueueName=name)["QueueUrl"]
    arn = sqs.ask("get_queue_attributes", QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    make_bucket(endpoint, name)
    told = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}]}
    s3 = Service("s3", endpoint, "us-east-1", KEY, SECRET)
    s3.ask("put_bucket_notification_configuration", Bucket=name, NotificationConfiguration=told)
    s3.close()
    home = tmp_path / "home"
    home.mkdir()
    lines = {"blobs": f"s3://{name}/home", "s3_endpoint": endpoint, "s3_key": KEY, "s3_secret": SECRET}
    lines |= {"aws_endpoint": endpoint, "storage_events": name}
    (home / "rushes.toml").write_text("".join(f'{key} = "{value}"\n' for key, value in lines.items()))
    site = Site(home, replace(ministack_s3, bucket=name, prefix=""), sqs, queue)
    with Library(home) as library:
        assert library.home.blobs  # their mark is an object as well
    wait_for(lambda: bool(site.taken()), "nothing was told of the mark")
    return site


def test_what_is_created_is_taken_in_by_its_event_and_the_message_deleted_after(site: Site) -> None:
    with Library(site.home) as library:
        assert site.watch(library, lambda: site.put(ODD), lambda: site.put("films/notes.txt")) == [ODD]
        assert [job.name for job in library.jobs.page().rows] == [Path(ODD).name]
    assert site.left == 0


def doubled(site: Site, events: list[str]) -> None:
    for body in events * 3:
        site.say(body)


def reordered(site: Site, events: list[str]) -> None:
    for body in random.Random(7).sample(events, len(events)):
        site.say(body)


def dropped(site: Site, events: list[str]) -> None:
    for body in events[::2]:
        site.say(body)


@pytest.mark.parametrize("fault", [doubled, reordered, dropped])
def test_whatever_becomes_of_the_events_each_version_is_taken_in_once(
    site: Site, fault: Callable[[Site, list[str]], None]
) -> None:
    films = [f"films/{n}.mp4" for n in range(4)]

    def created() -> None:
        for film in films:
            site.put(film, film.encode())
        fault(site, site.taken())

    with Library(site.home) as library:
        took = site.watch(library, created, looks=SCAN_LOOKS if fault is dropped else 2)
        assert Counter(took) == Counter(films)
        if fault is dropped:
            assert took.index(films[0]) < took.index(films[1])  # the scan finds what was not told
        assert len(library.jobs.page().rows) == len(films)
        assert site.watch(library) == []
    assert site.left == 0


def test_a_later_version_is_another_film_and_an_event_of_a_key_that_is_gone_is_none(site: Site) -> None:
    def replaced() -> None:
        site.put("films/a.mp4", b"another")
        site.put("films/gone.mp4")
        connect(site.bucket).delete("films/gone.mp4")

    with Library(site.home) as library:
        assert site.watch(library, lambda: site.put("films/a.mp4"), replaced) == ["films/a.mp4"] * 2
    assert site.left == 0


def test_poison_is_deleted_and_counted_and_a_test_event_only_deleted(site: Site) -> None:
    for body in ("hello", "[]", json.dumps({"Event": "s3:TestEvent", "Bucket": "b"})):
        site.say(body)
    with Library(site.home) as library:
        assert site.watch(library) == []
        assert library.home.storage_events is not None
        assert library.home.storage_events.poison == 2
    assert site.left == 0


def test_a_message_stays_until_what_it_tells_has_been_done(site: Site) -> None:
    with Library(site.home) as library:
        site.watch(library)
        site.put("films/a.mp4")
        died = library.watch([f"{site.bucket.url}/films"], PROBE, pause=lambda _seconds: False)
        assert next(died).created
        assert isinstance(died, Generator)
        died.close()  # killed before it was said that this is done
        assert site.left == 1


def test_a_queue_that_is_not_there_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHES_STORAGE_EVENTS", "nowhere")
    with Library(site.home) as library, pytest.raises(WrongHome):
        site.watch(library)


@pytest.mark.parametrize("told", [True, False])
def test_a_job_that_is_there_before_its_file_begins_when_it_has_arrived(site: Site, told: bool, toy_film: Path) -> None:
    with Library(site.home) as library:
        promised = expect_upload(library.home, "Holiday.MP4", PROBE)
        assert promised.address == f"{site.bucket.url}/home/input/{promised.job.id}/source.mp4"

        def upload() -> None:
            assert _first(library, promised.job.id) is TaskState.WAITING
            site.put(f"home/{promised.key}", toy_film)
            if not told:
                site.taken()

        assert site.watch(library, upload, looks=SCAN_LOOKS, below="") == []
        assert _first(library, promised.job.id) is TaskState.READY
        home = library.home
        worker(home, slots=1, until=lambda _shell: home.ledger.job(promised.job.id).state is JobState.COMPLETED).run()
        assert json.loads(home.ledger.job(promised.job.id).facts)["size"] == toy_film.stat().st_size


def test_what_follows_reads_the_version_of_a_promised_file_that_probe_read(site: Site, toy_film: Path) -> None:
    with Library(site.home) as library:
        home = library.home
        promised = expect_upload(home, "holiday.mp4", JobRequest(only=("audio",)))
        site.put(f"home/{promised.key}", toy_film)
        site.watch(library, looks=SCAN_LOOKS, below="")
        worker(home, slots=1, until=lambda _shell: home.ledger.job(promised.job.id).state is JobState.COMPLETED).run()
        (audio,) = home.ledger.tasks(ids=[task_id(promised.job.id, "audio", None)]).rows
        etag = str(connect(site.bucket).head(f"home/{promised.key}")["e_tag"]).strip('"')
        assert json.loads(audio.spec)["source"]["etag"] == etag
        ((video,), _) = library.videos.page()
        assert original(home, video).spec.source.etag == etag


def test_machines_share_out_films_by_a_queue_of_their_addresses_and_by_looking(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is told of twice, by two machines' looks as well: every film is taken in once, and the queue is empty."""
    site.sqs.ask("set_queue_attributes", QueueUrl=site.queue, Attributes={"VisibilityTimeout": "1"})
    monkeypatch.setattr("rushes.library.watching.watch.LOOK_SECONDS", 0.05)
    settings = (site.home / "rushes.toml").read_text().replace("/home", "") + f'store = "{site.bucket.url}"\n'
    homes = [tmp_path / f"machine{n}" for n in range(2)]
    for home in homes:
        home.mkdir()
        (home / "rushes.toml").write_text(settings)
    place = f"{site.bucket.url}/films"
    with Library(homes[0]) as one, Library(homes[1]) as other, one.watching(place), other.watching(place):
        for n in range(3):
            connect(site.bucket).put(f"films/{n} .mp4", b"film %d" % n)
        site.say("\n".join(f"{place}/{n} .mp4" for n in range(3)))
        site.say(f"{place}/1 .mp4")
        site.say(f"{place}/nothing.mp4")
        wait_for(lambda: site.left == 0 and len(one.jobs.page().rows) >= 3, "the films were never taken in")
    with Library(homes[0]) as library:
        assert sorted(job.name for job in library.jobs.page().rows) == [f"{n} .mp4" for n in range(3)]


def _first(library: Library, job: str) -> TaskState:
    return library.home.ledger.tasks(job).rows[0].state
