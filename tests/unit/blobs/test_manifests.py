"""Reading manifests: one way for everybody, and whatever is wrong with one is told as damage."""

import pytest

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import manifest_key
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.ledger.port import Debt
from rushes.worker.publish import publish
from tests.memory_blobs import MemoryBlobs

KEY = "0" * 12 + "-" + "a" * 40


def manifest(*artifacts: Artifact) -> Manifest:
    return Manifest(KEY, "hls", artifacts, Provenance("job", "playlist", "rushes", "1", "fast", "", "", 1))


def test_what_was_written_is_read() -> None:
    blobs = MemoryBlobs()
    blobs.create(manifest_key("me", KEY), manifest().to_bytes())
    assert read_manifest(blobs, "me", KEY) == manifest()


@pytest.mark.parametrize("data", [None, b"", b"\xff", b"[]", b'"text"', b"{}", b'{"key": 1, "provenance": {}}'])
def test_a_manifest_that_is_missing_or_no_manifest_is_damage(data: bytes | None) -> None:
    blobs = MemoryBlobs()
    if data is not None:
        blobs.create(manifest_key("me", KEY), data)
    with pytest.raises(DamagedBlob, match=KEY):
        read_manifest(blobs, "me", KEY)
    with pytest.raises(DamagedBlob):
        publish(blobs, Debt("me", "job", KEY))


def test_every_artifact_gets_the_name_it_asked_for() -> None:
    blobs = MemoryBlobs()
    blob = blobs.put("me", b"list")
    named = Artifact("index.m3u8", blob.sha256, blob.size, "text", "videos/proxy/v/index.m3u8")
    blobs.create(manifest_key("me", KEY), manifest(named, Artifact("a", blob.sha256, 4, "text")).to_bytes())
    publish(blobs, Debt("me", "job", KEY))
    assert list(blobs.keys("videos/")) == ["videos/proxy/v/index.m3u8"]
