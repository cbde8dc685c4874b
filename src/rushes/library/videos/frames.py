"""The frame at a time: the kept frame at or before it, read by range from the frame pack."""

import json
from fractions import Fraction

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import DamagedBlob, NotFound
from rushes.domain.task import Task, TaskState
from rushes.home import Home
from rushes.index.port import Video
from rushes.ledger.pages import all_tasks
from rushes.media.developing.frame_pack import PackedFrame, PackIndex, read_frame
from rushes.plan.planner import results_of

STAGE = "develop"


def frame(home: Home, video: Video, us: int) -> bytes:
    """A JPEG of the film at that moment of film time.

    Raises:
        NotFound: no kept frame is there (yet, or any more).
    """
    for job in video.jobs:
        zero = Fraction(*json.loads(home.ledger.job(job).facts or "{}").get("start", (0, 1)))
        moment = Fraction(us, 1_000_000) + zero
        task = _chunk(all_tasks(home.ledger, job, TaskState.DONE, STAGE), moment)
        if task and (jpeg := _read(home, video.owner, task, int(moment * 1_000_000))):
            return jpeg
    raise NotFound(f"{video.name} has no frame there yet", "The stage develop makes frames.")


def _chunk(tasks: tuple[Task, ...], moment: Fraction) -> Task | None:
    begun = [(span.start * span.base, t) for t in tasks if (span := t.span) and span.start * span.base <= moment]
    return max(begun, key=lambda pair: pair[0])[1] if begun else (tasks[0] if tasks else None)


def _read(home: Home, owner: str, task: Task, us: int) -> bytes | None:
    try:
        manifest = read_manifest(home.blobs, owner, results_of(task.spec)["frames"])
        with home.blobs.open(owner, manifest.artifact("frames.json").sha256) as f:
            kept = _at(PackIndex.from_json(json.load(f)).frames, us)
        if kept is None:
            return None
        with home.blobs.open(owner, manifest.artifact("frames.pack").sha256) as pack:
            return read_frame(pack, kept)
    except (DamagedBlob, KeyError):
        return None


def _at(frames: tuple[PackedFrame, ...], us: int) -> PackedFrame | None:
    before = [k for k in frames if k.us <= us]
    return before[-1] if before else (frames[0] if frames else None)
