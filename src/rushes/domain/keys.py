"""Builders and parsers of every id and key. Pure."""

import base64
import hashlib
import json
import re
from typing import Any

JSON = Any  # a value that json can carry

_NAME = re.compile(r"^[a-z][a-z0-9_]{0,39}\Z")
_OWNER = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")


def canonical(value: JSON) -> bytes:
    """The canonical bytes of a JSON value: sorted keys, no spaces, no NaN, ASCII only.

    ASCII because file names may hold bytes that are not text: escaped, every store can hold them.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest(value: JSON) -> str:
    """sha256 (hex) of the canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


def short(value: JSON) -> str:
    """Sixteen lower-case base32 characters (80 bits) of the digest: short ids for people."""
    raw = hashlib.sha256(canonical(value)).digest()[:10]
    return base64.b32encode(raw).decode().lower()


def is_name(text: str) -> bool:
    """Whether a text may be the name of a stage, an output or a recipe."""
    return bool(_NAME.match(text))


def is_owner(text: str) -> bool:
    """Whether a text may be an owner: safe in keys and paths."""
    return bool(_OWNER.match(text))


def is_id(text: str) -> bool:
    """Whether a foreign text may be an id: safe in keys, paths and stores."""
    return bool(_ID.match(text))


def job_id(owner: str, request_id: str) -> str:
    """The same request of the same owner is the same job."""
    return "job_" + short(["job", owner, request_id])


def video_id(owner: str, sha256: str) -> str:
    """A video is its owner and its content, wherever it lies."""
    return "vid_" + short(["video", owner, sha256])


def task_id(job: str, stage: str, chunk: int | None) -> str:
    """`job.stage.00012`, or `job.stage` for work on the whole video."""
    return f"{job}.{stage}" if chunk is None else f"{job}.{stage}.{chunk:05d}"


def parse_task_id(task: str) -> tuple[str, str, int | None]:
    """(job, stage, chunk) of a task id. Raises ValueError on anything else."""
    parts = task.split(".")
    if len(parts) not in (2, 3) or not all(parts):
        raise ValueError(f"not a task id: {task!r}")
    return parts[0], parts[1], int(parts[2]) if len(parts) == 3 else None


def chunk_file(chunk: int) -> str:
    """What the text of a chunk is called."""
    return f"chunk_{chunk:04d}.txt"


def result_key(subject: str, question: JSON) -> str:
    """The hash of the question, with the hash of its subject first so that one video's results sort together."""
    return f"{digest(subject)[:12]}-{digest(question)[:40]}"


def blob_key(owner: str, sha256: str) -> str:
    """The key of a blob."""
    return f"blobs/{owner}/{sha256[:2]}/{sha256}"


def parse_blob_key(key: str) -> tuple[str, str]:
    """(owner, sha256) of a blob's key. Raises ValueError on anything else."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] != "blobs" or blob_key(parts[1], parts[3]) != key:
        raise ValueError(f"not a blob key: {key!r}")
    return parts[1], parts[3]


def manifest_key(owner: str, result: str) -> str:
    """The key of the manifest of a result."""
    return f"results/{owner}/{result[:2]}/{result}.json"


def manifests_of_subject(owner: str, result: str) -> str:
    """The key prefix of the manifests of all results of the same subject."""
    return manifest_key(owner, result.partition("-")[0]).removesuffix(".json")


def params_key(job: str) -> str:
    """Where large parameters of a job in a queue of one's own are."""
    return f"jobs/{job}/params.json"


def queue_result_key(job: str, attempt: int) -> str:
    """What an attempt at such a job made."""
    return f"jobs/{job}/result.{attempt}.json"


def is_queue_document(key: str) -> bool:
    """Whether a key is one of these."""
    return bool(re.fullmatch(r"jobs/[^/]+/(params|result\.[0-9]+)\.json", key, re.ASCII))
