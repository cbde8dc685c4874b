"""Where things lie: the database, the text of each chunk, the whole transcript."""

import hashlib
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from tests.conformance.spot_checkpoints.conftest import Videos


def path_of(uri: str) -> Path:
    assert uri.startswith("file:///")
    return Path(unquote(urlsplit(uri).path))


def test_the_database_lies_beside_the_films(done: Videos) -> None:
    """1.2: the checkpoint database is SQLite, in the folder of the local films.

    Where: wiring/local.py
    """
    assert done.database.read_bytes().startswith(b"SQLite format 3\0")
    assert done.database.is_relative_to(done.folder)


def test_each_chunk_has_its_text_by_its_number(done: Videos) -> None:
    """1.2: `transcripts/<stem>/chunks/chunk_0000.txt` is the text of a chunk.

    Where: plan/job_names.py, worker/publish.py
    """
    folder = done.files / "transcripts" / "talks" / "meeting" / "chunks"
    assert sorted(file.name for file in folder.iterdir()) == ["chunk_0000.txt", "chunk_0001.txt", "chunk_0002.txt"]
    assert any("country" in file.read_text() for file in folder.iterdir())


def test_the_whole_transcript_is_beside_the_chunks(done: Videos) -> None:
    """1.2: `transcripts/<stem>/<name>.txt` is the final transcript.

    Where: plan/job_names.py, stages/transcript.py
    """
    text = (done.files / "transcripts" / "talks" / "meeting" / "meeting.txt").read_text()
    chunks = (done.files / "transcripts" / "talks" / "meeting" / "chunks").iterdir()
    assert text.split() == [word for chunk in sorted(chunks) for word in chunk.read_text().split()]


def test_a_film_in_a_bucket_has_its_texts_in_the_bucket(bucket: Videos, seaweed_s3: BucketLocation) -> None:
    """1.2, S3 inputs: of `s3://bucket/videos/meeting.mp4` the texts are `transcripts/meeting/...` in the same bucket.

    Where: plan/job_names.py
    """
    uris = bucket.column("SELECT transcript_uri FROM chunks WHERE stage = 'transcribe' ORDER BY chunk_index")
    (final,) = bucket.column("SELECT final_output_uri FROM files")
    place = f"s3://{seaweed_s3.bucket}/transcripts/meeting/"
    assert uris == [f"{place}chunks/chunk_{n:04d}.txt" for n in range(3)]
    assert final == f"{place}meeting.txt"
    key = final.removeprefix(f"s3://{seaweed_s3.bucket}/")
    body = bytes(connect(seaweed_s3).get(key).bytes())
    assert [hashlib.sha256(body).hexdigest()] == bucket.column("SELECT final_output_sha256 FROM files")


def test_a_film_in_a_bucket_is_named_as_such(bucket: Videos, seaweed_s3: BucketLocation) -> None:
    """5.3: `source_type` is s3 and `source_uri` is s3://bucket/key; the fingerprint has the ETag, size and time.

    Where: ledger/sqlite/migrations/0008_sources.sql
    """
    (file,) = bucket.rows("SELECT source_type, source_uri, source_fingerprint FROM files JOIN jobs USING (job_id)")
    assert (file["source_type"], file["source_uri"]) == ("s3", f"s3://{seaweed_s3.bucket}/videos/meeting.mp4")
    assert json.loads(file["source_fingerprint"])["etag"]


def test_a_source_is_a_uri_that_leads_to_the_film(done: Videos) -> None:
    """5.3: `files.source_uri` is file:///..., whatever characters the path has.

    Where: ledger/sqlite/migrations/0008_sources.sql
    """
    (uri,) = done.column("SELECT source_uri FROM files")
    assert " " not in uri
    assert path_of(uri) == done.folder / "talks" / "meeting.mp4"
