"""A slot looks whether its result is there: sound ones are adopted, and only what is damaged still is taken away."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rushes.blobs.documents import read_document
from rushes.blobs.folder import FolderBlobs
from rushes.blobs.port import ByteRange
from rushes.domain.keys import blob_key, manifest_key
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.worker.broker.attempt import adopt as _adopt
from tests.memory_blobs import MemoryBlobs

NAME = manifest_key("me", "k")


class Frozen(MemoryBlobs):
    """A store whose caller is frozen when it has seen damage, and wakes up after others went on."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def verify(self, owner: str, sha256: str, *, quarantine: bool = False) -> bool:
        found = super().verify(owner, sha256, quarantine=quarantine)
        do, self.meanwhile = self.meanwhile, lambda: None
        do()
        return found


def make(blobs: MemoryBlobs, attempt: int) -> Manifest:
    blob = blobs.put("me", b"data")
    made = Manifest("k", "film", (Artifact("f", blob.sha256, blob.size, "v"),), origin(attempt))
    assert blobs.create(NAME, made.to_bytes())
    return made


def origin(attempt: int) -> Provenance:
    return Provenance("job", "join", "p", "1", "f", "c", "i", attempt)


def mend(blobs: MemoryBlobs, attempt: int) -> None:
    """Another attempt meets the damage, sets it out of the way, and makes the result anew."""
    assert _adopt(blobs, "me", "k") is None
    make(blobs, attempt)


def test_a_damaged_result_is_set_out_of_the_way() -> None:
    blobs = MemoryBlobs()
    (artifact,) = make(blobs, 1).artifacts
    blobs.delete(blob_key("me", artifact.sha256))
    assert _adopt(blobs, "me", "k") is None
    assert read_document(blobs, NAME) is None


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_slot_that_slept_leaves_what_others_mended(attempt: int) -> None:
    blobs = Frozen()
    (artifact,) = make(blobs, 1).artifacts
    blobs.delete(blob_key("me", artifact.sha256))
    blobs.meanwhile = lambda: mend(blobs, attempt)
    adopted = _adopt(blobs, "me", "k")
    assert adopted
    assert blobs.verify("me", artifact.sha256)
    data = read_document(blobs, NAME)
    assert data
    assert f'"attempt":{attempt}'.encode() in data


class Slow(MemoryBlobs):
    """A store whose caller is frozen when it has read a manifest that is none."""

    def read(self, key: str, start: int = 0, end: int | None = None) -> ByteRange | None:
        found = super().read(key, start, end)
        if found and found.data == b"no manifest":
            super().delete(key)
            make(self, 2)
        return found


def test_a_slot_that_slept_leaves_the_manifest_that_others_wrote() -> None:
    blobs = Slow()
    blobs.create(NAME, b"no manifest")
    assert _adopt(blobs, "me", "k") is None
    assert _adopt(blobs, "me", "k")


def test_a_damaged_file_of_a_result_is_kept_where_nobody_takes_it_for_a_sound_one(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    blob = blobs.put("me", b"data")
    made = Manifest("k", "film", (Artifact("f", blob.sha256, blob.size, "v"),), origin(1))
    blobs.create(NAME, made.to_bytes())
    path = blobs.local("me", blob.sha256)
    path.chmod(0o600)
    path.write_bytes(b"rot!")
    assert _adopt(blobs, "me", "k") is None
    assert blobs.stat("me", blob.sha256) is None
    assert read_document(blobs, NAME) is None
