"""A slot looks whether its result is there: sound ones are adopted, and only what is damaged still is taken away."""

from collections.abc import Callable

import pytest

from rushes.blobs.memory import MemoryBlobs
from rushes.domain.keys import manifest_key
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.worker.slot import _adopt

NAME = manifest_key("me", "k")


class Frozen(MemoryBlobs):
    """A store whose caller is frozen when it has seen damage, and wakes up after others went on."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def sound(self, owner: str, sha256: str) -> bool:
        found = super().sound(owner, sha256)
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
    blobs.drop("me", artifact.sha256)
    assert _adopt(blobs, "me", "k") is None
    assert blobs.read(NAME) is None


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_slot_that_slept_leaves_what_others_mended(attempt: int) -> None:
    blobs = Frozen()
    (artifact,) = make(blobs, 1).artifacts
    blobs.drop("me", artifact.sha256)
    blobs.meanwhile = lambda: mend(blobs, attempt)
    adopted = _adopt(blobs, "me", "k")
    assert adopted
    assert blobs.sound("me", artifact.sha256)
    data = blobs.read(NAME)
    assert data
    assert f'"attempt":{attempt}'.encode() in data


class Slow(MemoryBlobs):
    """A store whose caller is frozen when it has read a manifest that is none."""

    def read(self, key: str) -> bytes | None:
        found = super().read(key)
        if found == b"no manifest":
            super().remove(key)
            make(self, 2)
        return found


def test_a_slot_that_slept_leaves_the_manifest_that_others_wrote() -> None:
    blobs = Slow()
    blobs.create(NAME, b"no manifest")
    assert _adopt(blobs, "me", "k") is None
    assert _adopt(blobs, "me", "k")
