"""Runs of a video: observations with provenance for programs, and the comparison of two runs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from fractions import Fraction

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import DamagedBlob, NotFound
from rushes.domain.keys import JSON, short, task_id
from rushes.domain.observation import MEDIA_TYPE, Observation, load
from rushes.domain.result import Manifest
from rushes.home import Home
from rushes.index.changes import IndexedResult
from rushes.index.people import KIND as PERSON
from rushes.index.port import Video
from rushes.index.tokenizer import words
from rushes.library.videos.payloads import TYPES, Payload, payload_of

FACE = "face"
FacePlace = tuple[int, tuple[float, float, float, float] | None]  # when and where a face is seen


@dataclass(frozen=True, slots=True)
class Envelope:
    """One observation with what produced it, in the shape that programs of the documents read."""

    artifact_id: str
    asset_id: str
    artifact_type: str
    schema_version: int
    span_start_ms: int
    span_end_ms: int
    payload_json: dict[str, JSON]
    producer: str
    producer_version: str
    model_profile: str
    config_hash: str
    input_hash: str
    run_id: str
    created_at: str | None


def envelopes(
    home: Home, video: str, kind: str = "", run: str = "", after: tuple[int, int] = (0, 0)
) -> Iterator[tuple[tuple[int, int], Envelope]]:
    """Envelopes of a video after a place, each with the place after it; a run shows its own, else what readers see."""
    results = select_results(home, home.owner, video, kind, run)
    film = next((v.sha256 for v in home.index.videos(home.owner, ids=[video])[0]), "")
    people = _people(home, video) if any(result.kind == FACE for result in results) else {}
    for at, result in enumerate(results[after[0] :], after[0]):
        begin = after[1] if at == after[0] else 0
        made = _made_at(home, result)
        for n, (manifest, line) in enumerate(_lines(home, result)):
            if n >= begin:
                payload = payload_of(line, n, people.get(_place(line), ""))
                yield (at, n + 1), _envelope(manifest, line, result, n, payload, film, made)


def select_results(home: Home, owner: str, video: str, kind: str, run: str) -> Sequence[IndexedResult]:
    """The results to read, in order of stage, kind and chunk."""
    state = home.index.state(owner, video)
    results = [r for r, _ in state.results if kind in ("", r.kind)]
    mine = [r for r in results if (r.job == run if run else (r.kind, r.key, r.manifest) in state.shown)]
    once = {(r.kind, r.key): r for r in mine}  # two jobs may share one result
    return sorted(once.values(), key=lambda r: (r.stage, r.kind, r.chunk or 0, r.key))


def _made_at(home: Home, result: IndexedResult) -> str | None:
    """When its task was done: then all that it found was there at once."""
    found = home.ledger.tasks(ids=[task_id(result.job, result.stage, result.chunk)]).rows
    return next((task.finished_at for task in found), None)


def _people(home: Home, video: str) -> dict[FacePlace, str]:
    """Whose face is seen when and where."""
    return {_place(line): str(line.extra["person"]) for line in home.index.lines(home.owner, video, PERSON)}


def _place(line: Observation) -> FacePlace:
    return line.span.start_us, line.box


def _lines(home: Home, result: IndexedResult) -> Iterator[tuple[Manifest, Observation]]:
    try:
        manifest = read_manifest(home.blobs, result.owner, result.key)
        zero = Fraction(*json.loads(home.ledger.job(result.job).facts).get("start", (0, 1)))
        for artifact in manifest.artifacts:
            if artifact.media_type == MEDIA_TYPE:
                with home.blobs.open(result.owner, artifact.sha256) as file:
                    yield from ((manifest, o.moved(-zero)) for o in load(file.read()) if o.kind == result.kind)
    except DamagedBlob:  # set aside meanwhile: the index forgets it soon
        return


def _envelope(
    manifest: Manifest, line: Observation, result: IndexedResult, n: int, payload: Payload, film: str, made: str | None
) -> Envelope:
    origin = manifest.provenance
    return Envelope(
        artifact_id="art_" + short([result.key, result.kind, n]),
        asset_id=result.video,
        artifact_type=TYPES.get(line.kind, line.kind),
        schema_version=manifest.schema_version,
        span_start_ms=line.span.start_us // 1000,
        span_end_ms=line.span.end_us // 1000,
        payload_json=payload,
        producer=origin.producer,
        producer_version=origin.producer_version,
        model_profile=origin.model_profile,
        config_hash=origin.config_hash,
        input_hash=film,
        run_id=origin.run_id,
        created_at=made,
    )


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A stretch of the film and what the two runs say in it."""

    start_us: int
    end_us: int
    left: str
    right: str

    @property
    def same(self) -> bool:
        """Whether they say the same words."""
        return words(self.left) == words(self.right)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side, and how much of their words they share (0 to 1)."""

    kind: str
    left: str
    right: str
    alike: float
    rows: tuple[ComparedRow, ...]


def compare(home: Home, video: Video, left: str, right: str, kind: str = "speech") -> Comparison:
    """What two runs offer of a kind.

    Raises:
        NotFound: a run is none of this video's, or offers nothing of the kind.
    """
    runs = [_run(video, left), _run(video, right)]
    lines = [home.follower.run_lines(video.owner, video.id, run, kind) for run in runs]
    for run, found in zip(runs, lines, strict=True):
        results = home.index.state(video.owner, video.id).results
        if not found and not any(r.job == run and r.kind == kind for r, _ in results):
            raise NotFound(f"{run} has no {kind}", f"See: rushes show {video.id}")
    a, b = ([w for line in some for w in words(line.text)] for some in lines)
    alike = SequenceMatcher(None, a, b, autojunk=False).ratio() if a or b else 1.0
    return Comparison(kind, runs[0], runs[1], round(alike, 4), tuple(align_lines(*lines)))


def align_lines(left: Sequence[Observation], right: Sequence[Observation]) -> list[ComparedRow]:
    """Lines that overlap in time stand in one row, in order of time."""
    both = [(o.span.start_us, max(o.span.end_us, o.span.start_us + 1), n, o) for n in (0, 1) for o in (left, right)[n]]
    rows: list[tuple[int, int, tuple[list[str], list[str]]]] = []
    for start, end, side, line in sorted(both, key=lambda row: row[:3]):
        if not rows or start >= rows[-1][1]:
            rows.append((start, end, ([], [])))
        first, last, texts = rows[-1]
        texts[side].append(line.text)
        rows[-1] = first, max(last, end), texts
    return [ComparedRow(start, end, " ".join(a), " ".join(b)) for start, end, (a, b) in rows]


def _run(video: Video, name: str) -> str:
    found = [job for job in video.jobs if job.startswith(name) or job == f"job_{name}"]
    if len(found) != 1 and name not in found:
        raise NotFound(f"{name[:60]!r} is not a run of {video.name}", f"Its runs: {', '.join(video.jobs)}")
    return name if name in found else found[0]
