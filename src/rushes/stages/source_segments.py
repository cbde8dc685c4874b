"""Source segments: the chunks of an original as files, for programs that look for what a 3D conversion works on."""

from rushes.domain.stage import Scope, StageSpec
from rushes.domain.stereo_keys import SegmentKey
from rushes.media.clips.clip import cut_clip
from rushes.media.stereo.frame_packing import SHORT_NAMES, StereoFormat
from rushes.stages.port import Work


class SourceSegments:
    """Cuts a chunk with its sound out of the original: copied where the codec allows it, no stage needs it."""

    spec = StageSpec(
        "source_segments",
        1,
        Scope.CHUNK,
        ("segment",),
        needs=("probe",),
        options={"mode": "sbs"},
        limits={"mode": (*SHORT_NAMES, *map(str, StereoFormat))},
        reads_source=True,
        intermediate=("segment",),
        per_job=True,
    )

    def run(self, work: Work) -> None:
        """Save segment.mp4 as `segments/{job}/{index}_{total}_{mode}.mp4`; nothing where there are no pictures."""
        work.count("segment", 0)
        if work.facts.video is None or work.span is None or work.chunk is None:
            return
        out = work.temporary(".mp4")
        start, end = (at * work.span.base for at in (work.span.start, work.span.end))
        made = cut_clip(work.footage(), work.facts, start, end, out, work.progress)
        key = SegmentKey(work.job, work.chunk, work.chunks, str(work.options["mode"]))
        work.save("segment", "segment.mp4", out, "video/mp4", str(key))
        work.note("segment", frames=made.frames, copied=made.copied)
        work.count("segment", made.frames)
