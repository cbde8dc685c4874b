"""Published names that depend on a job: the location of its video decides the path of the transcript.

A result knows its film, not the places where it lies: films with the same content share one result.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rushes.blobs.published import own_names
from rushes.domain.errors import NotFound
from rushes.domain.keys import chunk_file, task_id
from rushes.domain.result import TEXT, Manifest
from rushes.domain.task import Task
from rushes.ledger.pages import all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import JobSpec, results_of

CHUNKS, WHOLE = "transcribe", "transcript"  # the stages whose texts are published by path
_CHUNK = re.compile(r"^chunk_(\d{1,6})\.txt$")
_BUCKET = re.compile(r"^(?:s3|gs|az)://[^/]+/")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]|^\.")
_LONGEST = 180  # bytes of a part: the store takes 200, and names get an ending


def stem_of(path: str, videos: str) -> str:
    """`talks/meeting` of talks/meeting.mp4; of a bucket's object without the prefix under which videos lie there."""
    inside = _BUCKET.sub("", path)
    inside = inside if inside == path else inside.removeprefix(f"{videos.strip('/')}/")
    *folders, name = [part for part in inside.split("/") if part] or ["video"]
    parts = (_UNSAFE.sub("_", part) for part in (*folders, name.rpartition(".")[0] or name))
    return "/".join(part.encode()[:_LONGEST].decode("utf-8", "ignore") for part in parts)


@dataclass(frozen=True, slots=True)
class JobNames:
    """All names of a result that a job has: its own ones, and for texts those by the path of the film."""

    ledger: Ledger
    transcripts: str
    videos: str

    def __call__(self, job: str, manifest: Manifest) -> Mapping[str, str]:
        """The names, and the hash of what each names."""
        own = own_names(job, manifest)
        if not _text_of(manifest):
            return own
        try:
            spec = JobSpec.from_text(self.ledger.job(job).payload)
        except NotFound:  # forgotten since
            return own
        if manifest.provenance.stage == WHOLE:
            return {**own, **self.by_path(spec, None, manifest)}
        task = self._task_of(job, manifest)
        return {**own, **self.by_path(spec, task.chunk, manifest)} if task else own

    def by_path(self, spec: JobSpec, chunk: int | None, manifest: Manifest) -> Mapping[str, str]:
        """The names by path of a text that is this chunk of a job, or about all of its film."""
        text = _text_of(manifest)
        return {self.path_name(spec, chunk): text} if text and not spec.trial else {}

    def path_name(self, spec: JobSpec, chunk: int | None) -> str:
        """`transcripts/talks/meeting/chunks/chunk_0000.txt`, or `.../meeting.txt` of all of it."""
        stem = self.stem(spec)
        file = f"{stem.rpartition('/')[2]}.txt" if chunk is None else f"chunks/{chunk_file(chunk)}"
        return f"{self.transcripts.strip('/')}/{stem}/{file}"

    def stem(self, spec: JobSpec) -> str:
        """The folder of a film's transcripts."""
        return stem_of(spec.source.path, self.videos)

    def _task_of(self, job: str, manifest: Manifest) -> Task | None:
        """The task that made it, or would have: another grid may have the same span at another place."""
        named = [digits[0] for a in manifest.artifacts if (digits := _CHUNK.findall(a.name))]
        likely = self.ledger.tasks(ids=[task_id(job, CHUNKS, int(chunk)) for chunk in named]).rows if named else ()
        return _maker(likely, manifest.key) or _maker(all_tasks(self.ledger, job, stage=CHUNKS), manifest.key)


def _maker(tasks: Iterable[Task], key: str) -> Task | None:
    return next((task for task in tasks if key in results_of(task.spec).values()), None)


def _text_of(manifest: Manifest) -> str:
    """The hash of a transcript's text, "" if it is none."""
    texts = (a.sha256 for a in manifest.artifacts if a.media_type == TEXT)
    return next(texts, "") if manifest.provenance.stage in (CHUNKS, WHOLE) else ""
