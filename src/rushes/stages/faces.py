"""Faces: where they are in the kept frames of a chunk, and the directions by which people are told apart."""

import numpy as np

from rushes.domain.observation import MEDIA_TYPE, Observation, dump
from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.faces import input_side, pack_embeddings
from rushes.engines.port import Face
from rushes.stages.port import Work
from rushes.stages.sight.boxes import CONFIDENCE, box, points
from rushes.stages.sight.looks import SampledFrame, looks


class Faces:
    """Faces in pictures, frame by frame; who is who is decided over the whole library, elsewhere."""

    spec = StageSpec(
        "faces",
        1,
        Scope.CHUNK,
        ("faces",),
        needs=("probe", "develop.frames"),
        options={"profile": "balanced", "min_confidence": 0.7},
        models=("faces",),
    )

    def run(self, work: Work) -> None:
        """Save faces.jsonl, and embeddings.f16 with a row for each face in the same order."""
        least, near = float(work.options["min_confidence"]), input_side(str(work.options["profile"]))
        rows: list[Observation] = []
        directions: list[tuple[float, ...]] = []
        for look in looks(work):
            for face in work.engine.detect_faces(work.models["faces"], look.picture, least, near):
                rows.append(_observation(len(rows), look, face))
                directions.append(face.embedding)
        work.save("faces", "faces.jsonl", dump(rows), MEDIA_TYPE)
        work.save("faces", "embeddings.f16", pack_embeddings(np.array(directions)), "application/octet-stream")
        work.count("faces", len(rows))
        work.note("faces", kinds=["face"], dimensions=len(directions[0]) if rows else 0)


def _observation(row: int, look: SampledFrame, face: Face) -> Observation:
    return Observation(
        kind="face",
        span=look.span,
        text="",
        confidence=round(face.confidence, CONFIDENCE),
        box=box(face.box, look.picture),
        extra={"row": row, "points": points(face.points, look.picture)},
    )


STAGE = Faces()
