"""Faces in the sampled frames of a chunk, and the embeddings by which people are told apart."""

import math

import numpy as np

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.vision import input_side, pack_embeddings
from rushes.engines.port import Face
from rushes.stages.port import Work
from rushes.stages.vision.samples import FRAMES, relative_points, sampled_frames


class Faces:
    """Detects and embeds faces frame by frame; the index clusters them into people."""

    spec = StageSpec(
        "faces",
        2,
        Scope.CHUNK,
        ("faces",),
        FRAMES,
        options={"profile": "balanced", "min_confidence": 0.85},
        limits={"min_confidence": (0.0, 1.0)},
        lane="gpu",
        models=("faces",),
    )

    def run(self, work: Work) -> None:
        """Save faces.jsonl, and embeddings.f16 with a row for each face in the same order."""
        least, side = float(work.options["min_confidence"]), input_side("faces", str(work.options["profile"]))
        model, engine = work.models["faces"], work.engine
        rows: list[Observation] = []
        embeddings: list[tuple[float, ...]] = []
        for frame, faces in sampled_frames(work, lambda pictures: engine.detect_faces(model, pictures, least, side)):
            for face in faces:
                extra = {"row": len(rows), "points": relative_points(face.points, frame.size), **quality(face)}
                rows.append(frame.observation("face", "", face.confidence, face.box, extra=extra))
                embeddings.append(face.embedding)
        dimensions = len(embeddings[0]) if rows else 0
        work.save_observations("faces", "faces.jsonl", rows, kinds=["face"], dimensions=dimensions)
        work.save("faces", "embeddings.f16", pack_embeddings(np.array(embeddings)), "application/octet-stream")


def quality(face: Face) -> dict[str, JSON]:
    """What tells whether a face can be recognised: the distance of its eyes in pixels, and how sharp it is."""
    return {"eyes": round(math.dist(*face.points[:2]), 1), "sharpness": round(face.sharpness, 1)}
