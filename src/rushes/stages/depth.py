"""Depth of the sampled frames of a chunk."""

from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.vision import gives_inverse
from rushes.media.developing.frame_pack import PackIndex, read_frame
from rushes.media.stereo.depth import DepthWriter
from rushes.stages.port import Work
from rushes.stages.vision.samples import BATCH


class Depth:
    """Measures; what that means for a shot is decided over all chunks, elsewhere."""

    spec = StageSpec(
        "depth",
        1,
        Scope.CHUNK,
        ("depth",),
        needs=("probe", "develop.frames"),
        options={"output": "auto"},  # what the model's numbers are: depth, inverse, or known by its name
        models=("depth",),
        intermediate=("depth",),
    )

    def run(self, work: Work) -> None:
        """Save depth.bin with depth.json; nothing where there are no pictures."""
        work.count("depth", 0)
        pack = work.input("develop", "frames")
        if not pack.manifest.artifacts:
            return
        index, out = PackIndex.from_json(pack.json("frames.json")), work.temporary(".bin")
        model = work.models["depth"]
        inverse = gives_inverse(model, str(work.options["output"]))
        writer = DepthWriter(out, index.base, (index.width, index.height))
        with pack.open("frames.pack") as file:
            for n in range(0, len(index.frames), BATCH):
                frames = index.frames[n : n + BATCH]
                pictures = [read_frame(file, kept) for kept in frames]
                found = work.engine.inverse_depth(model, pictures, inverse=inverse)
                for kept, near in zip(frames, found, strict=True):
                    writer.add(kept.pts, near)
                work.progress(n / len(index.frames))
        maps = writer.finish()
        work.save("depth", "depth.bin", out, "application/octet-stream")
        work.save_json("depth", "depth.json", maps.to_json())
        work.count("depth", len(maps.maps))
