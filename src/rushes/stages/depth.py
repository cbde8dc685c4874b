"""Depth of the sampled frames of a chunk."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.vision import gives_inverse
from rushes.engines.port import answered
from rushes.media.developing.frame_pack import PackedFrame, PackIndex, read_frame
from rushes.media.stereo.depth import DepthWriter
from rushes.stages.port import Work

Map = NDArray[np.float32]


class Depth:
    """Measures; what that means for a shot is decided over all chunks, elsewhere."""

    spec = StageSpec(
        "depth",
        1,
        Scope.CHUNK,
        ("depth",),
        needs=("probe", "develop.frames"),
        options={"output": "auto"},  # what the model's numbers are: depth, inverse, or as the model says
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
        inverse = gives_inverse(str(work.options["output"]))
        writer = DepthWriter(out, index.base, (index.width, index.height))
        with pack.open("frames.pack") as file:

            def measure(n: int) -> list[tuple[PackedFrame, Map]]:
                work.progress(n / len(index.frames))
                frames = index.frames[n : n + work.engine.batch]
                pictures = [read_frame(file, kept) for kept in frames]
                return list(zip(frames, work.engine.inverse_depth(model, pictures, inverse=inverse), strict=True))

            for some in answered(partial(measure, n) for n in range(0, len(index.frames), work.engine.batch)):
                for kept, near in some:
                    writer.add(kept.pts, near)
        maps = writer.finish()
        work.save("depth", "depth.bin", out, "application/octet-stream")
        work.save_json("depth", "depth.json", maps.to_json())
        work.count("depth", len(maps.maps))
