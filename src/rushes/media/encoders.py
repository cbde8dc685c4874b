"""Encoder settings under which the same input gives the same bytes on every machine."""

from collections.abc import Iterator
from fractions import Fraction

import av
from av.audio.stream import AudioStream
from av.packet import Packet
from av.video.stream import VideoStream

from rushes.domain.video import AudioTrack, VideoTrack
from rushes.media.reading.resampling import Resampler

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
    return {
        "preset": "veryfast",
        "crf": str(crf),
        "bf": "2",
        "g": str(1 << 20),
        "sc_threshold": "0",
        "forced-idr": "1",
        "threads": "1",
        "flags": "+bitexact",
        "x264-params": "cpu-independent=1:scenecut=0:keyint=infinite",
    }


class AacEncoder:
    """A bit-exact AAC stream in a layout and at a rate that every player supports; takes frames of any format."""

    def __init__(self, out: av.container.OutputContainer, track: AudioTrack) -> None:
        mono = track.channels == 1
        self.rate = track.rate if track.rate in {44_100, 48_000} else 48_000
        self.samples = 0  # encoded so far
        self.stream: AudioStream = out.add_stream("aac", rate=self.rate, options={"flags": "+bitexact", "threads": "1"})
        self.stream.codec_context.layout = "mono" if mono else "stereo"
        self.stream.codec_context.bit_rate = 64_000 if mono else 128_000
        self._resampler = Resampler("fltp", "mono" if mono else "stereo", self.rate, _AAC_FRAME)

    def encode(self, frame: av.AudioFrame | None, start: int = 0) -> "Iterator[Packet[AudioStream]]":
        """The packets after one more frame, whose samples count from `start`; None flushes."""
        for part in self._resampler.push(frame):
            part.pts, part.time_base = start + self.samples, Fraction(1, self.rate)
            self.samples += part.samples
            yield from self.stream.encode(part)
        if frame is None and self.samples:
            yield from self.stream.encode(None)


def plausible_rate(rate: Fraction | None) -> Fraction:
    """A frame rate that encoders accept; only a hint to them."""
    return rate if rate and 1 <= rate <= 240 else Fraction(25)
