"""Develop: one pass of the decoder over a chunk makes the proxy piece, the frame pack and the cut metrics."""

import hashlib
from fractions import Fraction
from pathlib import Path

from rushes.domain.span import Span, clock, to_us
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.video import VideoTrack
from rushes.media.developing.cut_metrics import CutMetricsRecorder
from rushes.media.developing.frame_pack import FramePackWriter
from rushes.media.developing.proxy import ProxyWriter
from rushes.media.reading.frames import Sink, develop
from rushes.media.reading.mp4_boxes import avc_codec
from rushes.stages.port import Work


class Develop:
    """Makes what is wanted of the pictures of one chunk."""

    spec = StageSpec(
        "develop",
        3,
        Scope.CHUNK,
        ("proxy", "frames", "metrics"),
        needs=("probe",),
        options={"height": 720, "crf": 23, "target_fps": 10.0, "dedupe_threshold": 0.95},
        limits={"height": (144, 2160), "crf": (10, 40), "target_fps": (0.1, 60.0), "dedupe_threshold": (0.0, 1.0)},
        output_options={"proxy": ("height", "crf"), "frames": ("target_fps", "dedupe_threshold"), "metrics": ()},
        reads_source=True,
    )

    def run(self, work: Work) -> None:
        """Save piece.mp4, frames.pack with frames.json, and metrics.bin; nothing where there are no pictures."""
        track = work.facts.video
        if track is None or work.span is None:
            for output in work.wanted:
                work.count(output, 0)
            return
        span = Span(work.span.start, work.span.end, track.base)
        makers, damaged = _Makers(work, span), list[int]()
        try:
            develop(work.footage(), work.facts, span, makers.sinks(), work.progress, damaged.append)
            makers.save()
            _note_damage(work, [to_us(pts, track.base) for pts in damaged])
        finally:
            makers.close()


class _Makers:
    """The makers of the wanted outputs and their files."""

    def __init__(self, work: Work, span: Span) -> None:
        track = work.facts.video
        assert track is not None
        self._work = work
        self._piece, self._frames = work.temporary(".mp4"), work.temporary(".pack")
        height, crf = int(work.options["height"]), int(work.options["crf"])
        wanted = work.wanted
        self._metrics = CutMetricsRecorder(track) if "metrics" in wanted else None
        self._pack = _pack_writer(work, self._frames, track) if "frames" in wanted else None
        self._proxy = ProxyWriter(self._piece, work.facts, span, height, crf) if "proxy" in wanted else None

    def sinks(self) -> list[Sink]:
        """Those that are wanted."""
        return [sink for sink in (self._metrics, self._pack, self._proxy) if sink is not None]

    def close(self) -> None:
        """Close the files, whatever happened."""
        if self._proxy:
            self._proxy.close()
        if self._pack:
            self._pack.close()

    def save(self) -> None:
        """Store what they made."""
        if self._proxy:
            layout = self._proxy.finish()
            self._work.save("proxy", "piece.mp4", self._piece, "video/mp4")
            header = layout.init_segment(self._piece)
            self._work.note("proxy", **layout.to_json(), init_sha256=hashlib.sha256(header).hexdigest())
            self._work.note("proxy", width=self._proxy.size[0], height=self._proxy.size[1], codec=avc_codec(header))
        if self._pack:
            index = self._pack.finish()
            self._work.save("frames", "frames.pack", self._frames, "application/octet-stream")
            self._work.save_json("frames", "frames.json", index.to_json())
            self._work.count("frames", len(index.frames))
        if self._metrics:
            metrics = self._metrics.finish()
            self._work.save("metrics", "metrics.bin", metrics.to_bytes(), "application/octet-stream")
            self._work.count("metrics", len(metrics.pts))


def _pack_writer(work: Work, path: Path, track: VideoTrack) -> FramePackWriter:
    period = 1 / Fraction(str(work.options["target_fps"]))
    return FramePackWriter(path, track, period, float(work.options["dedupe_threshold"]))


def _note_damage(work: Work, times: list[int]) -> None:
    """Say in the manifests and the log where pictures are not what the camera saw."""
    if times:
        some = ", ".join(clock(us) for us in times[:5])
        work.log(f"{len(times)} frames cannot be decoded and are concealed as well as possible: {some}")
        for output in work.wanted:
            work.note(output, hidden_us=times)
