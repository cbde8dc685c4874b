"""Writes a smart cut: both ends encoded, the middle copied, one header for both."""

from fractions import Fraction
from itertools import chain, pairwise

from av.codec.context import CodecContext, Flags
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType
from av.video.stream import VideoStream

from rushes.domain.span import Span
from rushes.media.clips.smart_cut import CutPoints, copied_packets
from rushes.media.clips.video import CRF, ClipWork, VideoMuxer
from rushes.media.encoders import plausible_rate, x264_options
from rushes.media.open import open_footage, track_limits, video_stream
from rushes.media.reading.frames import decode
from rushes.media.reading.nal import ParameterSets, to_avcc

_FORMAT_FIELDS = ("width", "height", "pix_fmt", "colorspace", "color_range", "color_trc", "color_primaries")
_PROFILES = {66: "baseline", 77: "main"}


class SmartCutWriter:
    """A clip whose middle is copied, and whose ends are encoded without B-frames."""

    def __init__(self, work: ClipWork, found: CutPoints) -> None:
        self._work, self._found = work, found
        step = min((b - a for a, b in pairwise(found.times)), default=1)
        zero = found.times[0]
        early = (zero - step * n for n in range(found.delay, 0, -1))
        self._dts = (work.ticks(t - zero) for t in chain(early, found.times))
        self._zero = zero

    def write(self) -> tuple[int, int]:
        """Write the clip; returns its start in ticks of the film and its number of frames."""
        work, found, base = self._work, self._found, self._work.span.base
        self._open()
        self._muxer = VideoMuxer(work, self._zero)
        self._encode(Span(work.span.start, found.head, base))
        for packet in copied_packets(work.path, work.track, found):
            pts = packet.pts or 0
            self._mux(to_avcc(bytes(packet), found.sets.length_size), work.ticks(pts - self._zero), packet.is_keyframe)
            self._muxer.reached(pts)
        self._encode(Span(found.tail, work.span.end, base))
        self._muxer.finish()
        return self._zero, len(found.times)

    def _open(self) -> None:
        """Add the stream, with the parameter sets of the film and, where needed, of our encoder."""
        work, found = self._work, self._found
        with open_footage(work.path) as source:
            like = video_stream(source, track_limits(work.track))
            assert like is not None
            self._shape = {name: getattr(like.codec_context, name) for name in _FORMAT_FIELDS}
            self._stream = work.out.add_stream_from_template(like, opaque=False)
        self._stream.time_base = Fraction(1, work.scale)
        self._stream.codec_context.codec_tag = "avc1"
        needed = found.times[0] < found.head or found.times[-1] >= found.tail
        more = ParameterSets.of(self._encoder().extradata or b"") if needed else ParameterSets((), ())
        self._stream.codec_context.extradata = found.sets.header(more)

    def _encoder(self) -> VideoCodecContext:
        """An encoder with an unused sps-id, and the size and colours of the film."""
        context, work, sets = CodecContext.create("libx264", "w"), self._work, self._found.sets
        assert isinstance(context, VideoCodecContext)
        for name, value in self._shape.items():
            setattr(context, name, value)
        context.time_base, context.framerate = Fraction(1, work.scale), plausible_rate(work.track.rate)
        context.sample_aspect_ratio = work.track.sar
        context.flags |= Flags.global_header
        own = {"bf": "0", "g": "250", "profile": _PROFILES.get(sets.sps[0][1], "high")}
        context.options = x264_options(CRF) | own | {"x264-params": f"cpu-independent=1:sps-id={sets.free_id()}"}
        context.open()
        return context

    def _encode(self, span: Span) -> None:
        if not any(span.start <= t < span.end for t in self._found.times):
            return
        encoder, work = self._encoder(), self._work
        for frame in decode(work.path, work.facts, span, on_damage=work.hidden.append):
            pts = frame.pts or 0
            frame.pts, frame.time_base = work.ticks(pts - self._zero), Fraction(1, work.scale)
            frame.pict_type = PictureType.NONE
            self._take(encoder.encode(frame), pts)
        self._take(encoder.encode(None), span.end)

    def _take(self, packets: "list[Packet[VideoStream]]", reached: int) -> None:
        for packet in packets:
            self._mux(to_avcc(bytes(packet), 0), packet.pts or 0, packet.is_keyframe)
        self._muxer.reached(reached)

    def _mux(self, data: bytes, ticks: int, key: bool) -> None:
        packet = Packet(data)
        packet.pts, packet.dts, packet.time_base = ticks, next(self._dts), Fraction(1, self._work.scale)
        packet.is_keyframe, packet.stream = key, self._stream
        self._muxer.mux(packet)
