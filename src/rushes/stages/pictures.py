"""Pictures: embeddings of the sampled frames of a chunk, by which a sentence finds what is seen."""

from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.pictures import embedding_text
from rushes.stages.port import Work
from rushes.stages.vision.samples import FRAMES, sampled_frames


class Pictures:
    """Embeds frame by frame; only embeddings of one model are compared, so each row names it."""

    spec = StageSpec("pictures", 1, Scope.CHUNK, ("pictures",), FRAMES, lane="gpu", models=("pictures",))

    def run(self, work: Work) -> None:
        """Save pictures.jsonl: one row per frame."""
        model = work.models["pictures"]
        rows = [
            frame.observation("picture", "", 1.0, extra={"model": model, "embedding": embedding_text(row)})
            for frame, row in sampled_frames(work, lambda some: list(work.engine.embed_pictures(model, some)))
        ]
        work.save_observations("pictures", "pictures.jsonl", rows, kinds=["picture"])
