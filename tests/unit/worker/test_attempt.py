"""What a worker hands to a slot and what it stores of it: the slot is not believed."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import read_manifest
from rushes.blobs.port import Blob
from rushes.domain.errors import DamagedBlob, NeverWorks, SourceChanged, SourceMissing, StoreAway
from rushes.domain.keys import blob_key, manifest_key, video_id
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.domain.task import Lease
from rushes.domain.video import Fingerprint
from rushes.engines.wire import LARGEST
from rushes.media.originals import LocalOriginal
from rushes.stages.port import OutputDraft
from rushes.worker.broker.attempt import Attempt, AttemptDeps
from rushes.worker.broker.client import BorrowedBlobs, BorrowedOriginal, BrokerClient
from rushes.worker.broker.inference import Inference
from rushes.worker.broker.service import BrokerService, passed_call
from tests.memory_blobs import MemoryBlobs

KEY, PROBED = "a" * 40, "b" * 40
FILM = b"the film"


@dataclass
class Desk:
    """A task with one input and an original, and its slot's side of the line."""

    folder: Path
    blobs: MemoryBlobs
    attempt: Attempt
    client: BrokerClient
    facts: Blob
    video: str

    @property
    def borrowed(self) -> BorrowedBlobs:
        return BorrowedBlobs(self.client, self.folder / "scratch")

    def commit(self, *artifacts: Artifact, **facts: Any) -> None:
        draft = OutputDraft(list(artifacts), 1, facts)
        self.client.ask("commit", outputs={"film": asdict(draft)})

    def artifact(self, blob: Blob, publish: str | None = None, size: int | None = None) -> Artifact:
        return Artifact("film.mp4", blob.sha256, blob.size if size is None else size, "video/mp4", publish)


def provenance() -> Provenance:
    return Provenance("job", "probe", "p", "1", "f", "c", "i", 1)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    blobs, film = MemoryBlobs(), tmp_path / "film.mp4"
    film.write_bytes(FILM)
    (tmp_path / "scratch").mkdir()
    facts = blobs.put("me", json.dumps({"sha256": "c" * 64}).encode())
    probed = Manifest(PROBED, "facts", (Artifact("facts.json", facts.sha256, facts.size, "x"),), provenance())
    blobs.create(manifest_key("me", PROBED), probed.to_bytes())
    now = film.stat()
    spec = {
        "owner": "me",
        "results": {"film": KEY},
        "version": 1,
        "span": None,
        "options": {},
        "models": {},
        "profile": "",
        "config_hash": "",
        "inputs": {"probe.facts": [PROBED]},
        "source": asdict(Fingerprint(str(film), now.st_size, now.st_mtime_ns, now.st_ino)),
    }
    lease = Lease("job.toy", 1, "job", "toy", None, "cpu", json.dumps(spec), 0, 0)
    attempt = Attempt(AttemptDeps.on(blobs, partial(LocalOriginal, tmp_path), "0"), lease)
    ours, theirs = socket.socketpair()
    BrokerService(ours, lambda: attempt, Inference(lambda _stage: None))
    with theirs:
        attempt.begin()
        yield Desk(tmp_path, blobs, attempt, BrokerClient(theirs), facts, video_id("me", "c" * 64))


def test_what_a_slot_saves_is_stored_and_committed_by_its_worker(desk: Desk) -> None:
    file = desk.folder / "scratch" / "film.mp4"
    file.write_bytes(b"x" * 3_000_000)
    made = [desk.borrowed.put("me", file), desk.borrowed.put("me", b"small")]
    desk.commit(*(desk.artifact(blob, f"films/{desk.video}/film.mp4") for blob in made), frames=5)
    (result,) = desk.attempt.results
    assert (result.key, result.size, result.count, result.publishes) == (KEY, 3_000_005, 1, True)
    manifest = read_manifest(desk.blobs, "me", KEY)
    assert [a.sha256 for a in manifest.artifacts] == [blob.sha256 for blob in made]
    assert manifest.facts == {"frames": 5}


def test_an_input_comes_by_descriptor_and_as_a_copy_where_a_name_is_needed(desk: Desk) -> None:
    with desk.borrowed.open("me", desk.facts.sha256) as file:
        assert json.load(file)["sha256"] == "c" * 64
    copy = desk.borrowed.local("me", desk.facts.sha256)
    assert copy.parent == desk.folder / "scratch"
    assert json.loads(copy.read_text())["sha256"] == "c" * 64


def rival(desk: Desk) -> Manifest:
    """Another attempt at the same result, which was faster: a lease that ran out, or another job."""
    blob = desk.blobs.put("me", b"as made by another")
    origin = Provenance("job_other", "toy", "p", "1", "f", "c", "i", 7)
    return Manifest(KEY, "film", (desk.artifact(blob),), origin)


def test_whoever_loses_the_race_for_a_manifest_goes_on_with_the_winners(desk: Desk) -> None:
    first = rival(desk)
    assert desk.blobs.create(manifest_key("me", KEY), first.to_bytes())
    desk.commit(desk.artifact(desk.borrowed.put("me", b"as made here")))
    (result,) = desk.attempt.results
    assert result.manifest_sha256 == hashlib.sha256(first.to_bytes()).hexdigest(), "what the ledger is told is there"
    assert read_manifest(desk.blobs, "me", KEY) == first


@pytest.mark.parametrize("how", ["its blob is lost", "it is that of another result", "it is none"])
def test_a_winner_that_is_damaged_is_taken_away_and_nothing_is_done(how: str, desk: Desk) -> None:
    first = rival(desk)
    other = replace(first, key="c" * 40)
    data = {"it is none": b"{", "it is that of another result": other.to_bytes()}.get(how, first.to_bytes())
    assert desk.blobs.create(manifest_key("me", KEY), data)
    if how == "its blob is lost":
        desk.blobs.delete(blob_key("me", first.artifacts[0].sha256))
    made = desk.artifact(desk.borrowed.put("me", b"as made here"))
    with pytest.raises(DamagedBlob):
        desk.commit(made)
    with pytest.raises(KeyError):
        assert desk.attempt.results
    desk.commit(made)
    assert read_manifest(desk.blobs, "me", KEY).artifacts == (made,)


def test_a_blob_of_another_task_is_not_passed_and_not_named(desk: Desk) -> None:
    other = desk.blobs.put("me", b"of another task")
    with pytest.raises(NeverWorks, match="does not belong to this task"):
        desk.borrowed.open("me", other.sha256)
    with pytest.raises(NeverWorks, match="not a blob of this task"):
        desk.commit(desk.artifact(other))
    with pytest.raises(NeverWorks, match="another owner"):
        desk.borrowed.put("you", b"mine")
    assert read_document(desk.blobs, manifest_key("me", KEY)) is None


def test_the_size_of_a_blob_is_what_was_stored(desk: Desk) -> None:
    with pytest.raises(NeverWorks):
        desk.commit(desk.artifact(desk.borrowed.put("me", b"small"), size=1))


@pytest.mark.parametrize(
    "name",
    [
        "results/me/aa/{key}.json",
        "videos/proxy/vid_other/index.m3u8",
        "{video}",
        "a/{video}",
        "clearing/me/{video}/x.json",
        "a/b/c/{video}/x",
        "segments/job_other/00000_00001_sbs.mp4",
    ],
)
def test_a_slot_publishes_names_of_its_own_video_only(desk: Desk, name: str) -> None:
    blob = desk.borrowed.put("me", b"small")
    with pytest.raises(NeverWorks, match="not a name of this video"):
        desk.commit(desk.artifact(blob, name.format(key=KEY, video=desk.video)))


def test_a_slot_does_not_say_where_the_original_is(desk: Desk) -> None:
    blob = desk.borrowed.put("me", b"small")
    with pytest.raises(NeverWorks, match="another original"):
        desk.commit(desk.artifact(blob), source={"path": "/etc/shadow", "size": 1, "mtime_ns": 1})


def test_a_file_that_a_slot_can_name_but_not_read_is_not_stored_for_it(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"of the worker")
    for flags in (os.O_PATH, os.O_WRONLY):
        named = os.open(tmp_path / "secret", flags)
        with pytest.raises(NeverWorks, match="can read"):
            desk.client.ask("put", named, owner="me")
        os.close(named)


def test_only_files_can_be_stored(desk: Desk) -> None:
    heard, said = os.pipe()
    try:
        with pytest.raises(NeverWorks, match="only a file"):
            desk.client.ask("put", heard, owner="me")
    finally:
        os.close(heard)
        os.close(said)


def test_the_size_of_a_question_is_looked_at_before_it_is_read(desk: Desk, tmp_path: Path) -> None:
    with (tmp_path / "question").open("w+b") as file:
        file.truncate(LARGEST)
        assert len(passed_call(file.fileno())) == LARGEST
        file.truncate(1 << 38)  # sparse: nobody can read that
        with pytest.raises(NeverWorks, match="not a request"):
            desk.client.ask("infer", file.fileno(), capability="embed")


def test_the_original_is_opened_anew_each_time_and_checked(desk: Desk) -> None:
    film = desk.folder / "film.mp4"
    original = BorrowedOriginal("film.mp4", Fingerprint(str(film), len(FILM), 0), 0, desk.client)
    with original.open() as one, original.open() as two:
        assert one.read(3) + two.read() == b"the" + FILM
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(one.fileno(), b"x")
    film.write_bytes(b"another film")
    with pytest.raises(SourceChanged, match="has changed since"):
        original.open()
    film.unlink()
    film.symlink_to("/etc/hostname")
    with pytest.raises(SourceMissing):
        original.open()


def test_what_fails_at_the_worker_is_raised_in_the_slot_as_what_it_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Blob:
        raise StoreAway("the bucket does not answer", "Wait.")

    monkeypatch.setattr(desk.blobs, "put", away)
    with pytest.raises(StoreAway, match="does not answer") as raised:
        desk.borrowed.put("me", b"small")
    assert raised.value.advice == "Wait."
    assert desk.attempt.told == {"StoreAway"}


def test_what_is_missing_is_said_before_anything_is_committed(desk: Desk) -> None:
    with pytest.raises(NeverWorks, match="did not save: film"):
        desk.client.ask("commit", outputs={})
    with pytest.raises(NeverWorks, match="does not have"):
        desk.client.ask("read_ledger")
