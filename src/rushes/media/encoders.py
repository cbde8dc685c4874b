"""Encoder settings under which the same input gives the same bytes on every machine."""

from collections.abc import Iterator
from fractions import Fraction

import av
from av.audio.stream import AudioStream
from av.packet import Packet
from av.video.stream import VideoStream

from rushes.domain.video import AudioTrack, VideoTrack
from rushes.media.reading.audio import Resampler

_AAC_FRAME = 1024  # samples


def x264_stream(
    out: av.container.OutputContainer, track: VideoTrack, picture: av.VideoFrame, scale: int, options: dict[str, str]
) -> VideoStream:
    """An H.264 stream for pictures like this one, in ticks of 1 / scale seconds, with their colour tags."""
    stream = out.add_stream("libx264", rate=plausible_rate(track.rate), options=options)
    context = stream.codec_context
    context.width, context.height = picture.width, picture.height
    context.pix_fmt = "yuv420p"
    context.time_base = Fraction(1, scale)
    context.colorspace, context.color_range = picture.colorspace, picture.color_range
    context.color_trc, context.color_primaries = picture.color_trc, picture.color_primaries
    return stream


def x264_options(crf: int) -> dict[str, str]:
    """One thread and no processor-dependent choices, at 1.02 of the cost."""
    coding = {"preset": "veryfast", "crf": str(crf), "bf": "2"}
    keys = {"g": str(1 << 20), "sc_threshold": "0", "forced-idr": "1"}
    exact = {"threads": "1", "flags": "+bitexact", "x264-params": "cpu-independent=1:scenecut=0:keyint=infinite"}
    return coding | keys | exact


def aac_rate(track: AudioTrack) -> int:
    """The sample rate at which a track is encoded."""
    return track.rate if track.rate in {44_100, 48_000} else 48_000


class AacEncoder:
    """A track as bit-exact AAC, in a channel layout and a sample rate that every player supports."""

    def __init__(self, out: av.container.OutputContainer, track: AudioTrack) -> None:
        layout = "mono" if track.channels == 1 else "stereo"
        self.rate = aac_rate(track)
        self.stream = out.add_stream("aac", rate=self.rate, options={"flags": "+bitexact", "threads": "1"})
        self.stream.codec_context.layout = layout
        self.stream.codec_context.bit_rate = 64_000 if layout == "mono" else 128_000
        self._resampler = Resampler("fltp", layout, self.rate, _AAC_FRAME)
        self.samples = 0  # encoded so far

    def encode(self, frame: av.AudioFrame | None, start: int = 0) -> "Iterator[Packet[AudioStream]]":
        """The packets after one more frame; None flushes. `start` is the time of the first sample, in samples."""
        for piece in self._resampler.push(frame):
            piece.pts, piece.time_base = start + self.samples, Fraction(1, self.rate)
            self.samples += piece.samples
            yield from self.stream.encode(piece)
        if frame is None and self.samples:
            yield from self.stream.encode(None)


def plausible_rate(rate: Fraction | None) -> Fraction:
    """A frame rate that encoders accept; only a hint to them."""
    return rate if rate and 1 <= rate <= 240 else Fraction(25)
