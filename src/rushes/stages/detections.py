"""Detections: objects, faces and scene classes in the sampled frames of a chunk."""

import numpy as np

from rushes.domain.observation import Observation
from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.vision import input_side, pack_embeddings
from rushes.stages.port import Work
from rushes.stages.vision.samples import CONFIDENCE_DIGITS, FRAMES, SampledFrame, relative_points, sampled_frames

UNKNOWN = "unknown"


class Objects:
    """Detects objects frame by frame."""

    spec = StageSpec(
        "objects", 1, Scope.CHUNK, ("objects",), FRAMES, options={"min_confidence": 0.4}, models=("objects",)
    )

    def run(self, work: Work) -> None:
        """Save objects.jsonl."""
        least, model = float(work.options["min_confidence"]), work.models["objects"]
        found = [
            frame.observation("object", d.label, d.confidence, d.box)
            for frame in sampled_frames(work)
            for d in work.engine.detect_objects(model, frame.picture, least)
        ]
        work.save_observations("objects", "objects.jsonl", found, kinds=["object"])


class Faces:
    """Detects and embeds faces frame by frame; the index clusters them into people."""

    spec = StageSpec(
        "faces",
        1,
        Scope.CHUNK,
        ("faces",),
        FRAMES,
        options={"profile": "balanced", "min_confidence": 0.7},
        models=("faces",),
    )

    def run(self, work: Work) -> None:
        """Save faces.jsonl, and embeddings.f16 with a row for each face in the same order."""
        least, side = float(work.options["min_confidence"]), input_side("faces", str(work.options["profile"]))
        rows: list[Observation] = []
        embeddings: list[tuple[float, ...]] = []
        for frame in sampled_frames(work):
            for face in work.engine.detect_faces(work.models["faces"], frame.picture, least, side):
                extra = {"row": len(rows), "points": relative_points(face.points, frame.picture)}
                rows.append(frame.observation("face", "", face.confidence, face.box, extra=extra))
                embeddings.append(face.embedding)
        dimensions = len(embeddings[0]) if rows else 0
        work.save_observations("faces", "faces.jsonl", rows, kinds=["face"], dimensions=dimensions)
        work.save("faces", "embeddings.f16", pack_embeddings(np.array(embeddings)), "application/octet-stream")


class Places:
    """Classifies the scene frame by frame; `unknown` where no class is likely enough."""

    spec = StageSpec(
        "places", 1, Scope.CHUNK, ("places",), FRAMES, options={"min_confidence": 0.3, "top_k": 5}, models=("places",)
    )

    def run(self, work: Work) -> None:
        """Save places.jsonl: one row per frame, with the `top_k` likeliest classes in `top`."""
        found = [_place(work, frame) for frame in sampled_frames(work)]
        work.save_observations("places", "places.jsonl", found, kinds=["place"])


def _place(work: Work, frame: SampledFrame) -> Observation:
    guesses = work.engine.classify_place(work.models["places"], frame.picture, int(work.options["top_k"]))
    label, share = guesses[0] if guesses else (UNKNOWN, 0.0)
    if share < float(work.options["min_confidence"]):
        label, share = UNKNOWN, 1 - share
    top = [[name, round(part, CONFIDENCE_DIGITS)] for name, part in guesses]
    return frame.observation("place", label, share, extra={"top": top})
