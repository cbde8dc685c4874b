"""Observations with their provenance, as programs read them: of the run that is shown, or of one that was pinned."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import JSON, short
from rushes.domain.observation import MEDIA_TYPE, Observation, load
from rushes.domain.result import Manifest
from rushes.home import Home
from rushes.index.changes import IndexedResult

KINDS = {
    "speech": "transcript.segment",
    "text": "ocr.text",
    "entity": "ocr.entity",
    "object": "object.detection",
    "face": "face.detection",
    "place": "place.classification",
}  # our kinds -> the words of the documents


@dataclass(frozen=True, slots=True)
class Envelope:
    """One observation with what produced it, in the shape that seed B's programs read."""

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


def envelopes(
    home: Home, video: str, kind: str = "", run: str = "", after: tuple[int, int] = (0, 0)
) -> Iterator[tuple[tuple[int, int], Envelope]]:
    """Envelopes of a video after a place, each with the place after it; a run shows its own, else what readers see."""
    owner = home.settings.owner
    results = select_results(home, owner, video, kind, run)
    for at, result in enumerate(results[after[0] :], after[0]):
        begin = after[1] if at == after[0] else 0
        for n, (manifest, line) in enumerate(_lines(home, result)):
            if n >= begin:
                yield (at, n + 1), _envelope(manifest, line, result, n)


def select_results(home: Home, owner: str, video: str, kind: str, run: str) -> Sequence[IndexedResult]:
    """The results to read, in order of stage, kind and chunk."""
    state = home.index.state(owner, video)
    results = [r for r, _ in state.results if kind in ("", r.kind)]
    mine = [r for r in results if (r.job == run if run else (r.kind, r.key, r.manifest) in state.shown)]
    once = {(r.kind, r.key): r for r in mine}  # two jobs may share one result
    return sorted(once.values(), key=lambda r: (r.stage, r.kind, r.chunk or 0, r.key))


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


def _envelope(manifest: Manifest, line: Observation, result: IndexedResult, n: int) -> Envelope:
    origin = manifest.provenance
    return Envelope(
        artifact_id="art_" + short([result.key, result.kind, n]),
        asset_id=result.video,
        artifact_type=KINDS.get(line.kind, line.kind),
        schema_version=manifest.schema_version,
        span_start_ms=line.span.start_us // 1000,
        span_end_ms=line.span.end_us // 1000,
        payload_json=line.to_json(),
        producer=origin.producer,
        producer_version=origin.producer_version,
        model_profile=origin.model_profile,
        config_hash=origin.config_hash,
        input_hash=origin.input_hash,
        run_id=origin.run_id,
    )
