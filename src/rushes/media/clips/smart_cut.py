"""Smart cut: where the codec allows, only the first and the last group of pictures are encoded, the rest is copied."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, dropwhile, islice, pairwise

import numpy as np
from av.codec.context import CodecContext, Flags
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType
from av.video.stream import VideoStream

from rushes.domain.span import Span
from rushes.domain.video import Footage, VideoTrack
from rushes.media.clips.encoding import CRF, ClipWork, VideoMuxer
from rushes.media.encoders import plausible_rate, x264_options
from rushes.media.open import open_footage, track_limits, video_stream
from rushes.media.reading.frames import decode
from rushes.media.reading.nal import ParameterSets, is_idr, parameter_sets, to_avcc

_SEEK_BACK_SECONDS = (0, 1, 2, 4, 8)
_FORMAT_FIELDS = ("width", "height", "pix_fmt", "colorspace", "color_range", "color_trc", "color_primaries")
_PROFILES = {66: "baseline", 77: "main"}


@dataclass(frozen=True, slots=True)
class CutPoints:
    """A clip in three parts: encoded up to `head`, copied from there to `tail`, encoded again to its end."""

    head: int
    tail: int
    copied: int  # packets
    times: "array[int]"  # of all its frames, in order
    delay: int  # by how many frames the decoder of the copied part lags
    sets: ParameterSets
    seek: int  # from where all of it is read


def find_cut_points(path: Footage, track: VideoTrack, span: Span) -> CutPoints | None:
    """Where to cut, or None where only encoding all of it is exact."""
    if track.codec != "h264" or track.interlaced or track.damaged or not track.seekable:
        return None
    with open_footage(path) as container:
        stream = video_stream(container, track_limits(track))
        if stream is None or not _is_yuv420(stream):
            return None
        sets = ParameterSets.of(stream.codec_context.extradata or b"")
        for back in _SEEK_BACK_SECONDS if sets.sps else ():
            seek = span.start - int(back / track.base)
            container.seek(seek, stream=stream, backward=True)
            packets = _packets_up_to(container.demux(stream), span)
            marks = _PacketScan(sets)
            if marks.begin(packets, span.start):  # a seek may land late
                return _choose(marks, span, track, seek) if marks.add_all(packets) else None
    return None


def copied_packets(path: Footage, track: VideoTrack, found: CutPoints) -> "Iterator[Packet[VideoStream]]":
    """The packets between the seams, in the order of decoding."""
    with open_footage(path) as container:
        stream = video_stream(container, track_limits(track))
        assert stream is not None
        container.seek(found.seek, stream=stream, backward=True)
        after = dropwhile(lambda packet: packet.pts != found.head, container.demux(stream))
        yield from islice(after, found.copied)


class _PacketScan:
    """What matters of packets, in eight bytes each: ten hours have a million of them."""

    def __init__(self, sets: ParameterSets) -> None:
        self.sets = sets
        self._known = {*sets.sps, *sets.pps}
        self.order = array("q")  # times in the order of decoding
        self.entries = array("q")  # numbers of the packets where decoding may begin
        self.strange = array("q")  # of those that are hidden, or have parameters that the header does not have

    def begin(self, packets: "Iterator[Packet[VideoStream]]", latest: int) -> bool:
        """Take the first packet; whether decoding may begin there, not later than at that time."""
        first = next(packets, None)
        return first is not None and self._add(first) and bool(self.entries) and self.order[0] <= latest

    def add_all(self, packets: "Iterator[Packet[VideoStream]]") -> bool:
        """Take the others; whether each has a time."""
        return all(map(self._add, packets))

    def _add(self, packet: "Packet[VideoStream]") -> bool:
        if packet.pts is None:
            return False
        data, length_size, number = bytes(packet), self.sets.length_size, len(self.order)
        if packet.is_discard or packet.is_corrupt or not parameter_sets(data, length_size) <= self._known:
            self.strange.append(number)
        if packet.is_keyframe and is_idr(data, length_size):
            self.entries.append(number)
        self.order.append(packet.pts)
        return True


def _is_yuv420(stream: VideoStream) -> bool:
    return stream.codec_context.pix_fmt in {"yuv420p", "yuvj420p"}


def _packets_up_to(packets: "Iterator[Packet[VideoStream]]", span: Span) -> "Iterator[Packet[VideoStream]]":
    """Packets until all that could be shown in the span have come by."""
    for packet in packets:
        if packet.size == 0 or (packet.dts is not None and packet.dts > span.end):
            return
        yield packet


def _choose(marks: _PacketScan, span: Span, track: VideoTrack, seek: int) -> CutPoints | None:
    order, whole = np.frombuffer(marks.order, np.int64), span.end >= track.end
    entries = [n for n in marks.entries if span.start <= marks.order[n] <= span.end]
    if not entries or (len(entries) == 1 and not whole):
        return None
    first, last = entries[0], len(order) if whole else entries[-1]
    head, tail = marks.order[first], span.end if whole else marks.order[last]
    times = np.unique(order[(order >= span.start) & (order < span.end)])
    middle, inside = order[first:last], times[(times >= head) & (times < tail)]
    if not np.array_equal(np.sort(middle), inside) or any(first <= n < last for n in marks.strange):
        return None
    delay = int((np.arange(len(middle)) - np.searchsorted(inside, middle, "right")).max()) + 1
    return CutPoints(head, tail, len(middle), array("q", times.tobytes()), delay, marks.sets, seek)


class SmartCutWriter:
    """A clip whose middle is the film's own packets, and whose ends are encoded without B-frames to fit on."""

    def __init__(self, order: ClipWork, found: CutPoints) -> None:
        self._order, self._found = order, found
        step = min((b - a for a, b in pairwise(found.times)), default=1)
        zero = found.times[0]
        early = (zero - step * n for n in range(found.delay, 0, -1))
        self._dts = (order.ticks(t - zero) for t in chain(early, found.times))
        self._zero = zero

    def write(self) -> tuple[int, int]:
        """Write it all; its first moment in ticks of the film, and how many frames it has."""
        order, found, base = self._order, self._found, self._order.span.base
        self._open()
        self._track = VideoMuxer(order, self._zero)
        self._encode(Span(order.span.start, found.head, base))
        for packet in copied_packets(order.path, order.track, found):
            pts = packet.pts or 0
            self._mux(to_avcc(bytes(packet), found.sets.length_size), order.ticks(pts - self._zero), packet.is_keyframe)
            self._track.reached(pts)
        self._encode(Span(found.tail, order.span.end, base))
        self._track.finish()
        return self._zero, len(found.times)

    def _open(self) -> None:
        """Add the stream, with the parameters of the film and, where they are needed, of our encoder."""
        order, found = self._order, self._found
        with open_footage(order.path) as source:
            like = video_stream(source, track_limits(order.track))
            assert like is not None
            self._shape = {name: getattr(like.codec_context, name) for name in _FORMAT_FIELDS}
            self._stream = order.out.add_stream_from_template(like, opaque=False)
        self._stream.time_base = Fraction(1, order.scale)
        self._stream.codec_context.codec_tag = "avc1"
        needed = found.times[0] < found.head or found.times[-1] >= found.tail
        more = ParameterSets.of(self._encoder().extradata or b"") if needed else ParameterSets((), ())
        self._stream.codec_context.extradata = found.sets.header(more)

    def _encoder(self) -> VideoCodecContext:
        """An encoder whose parameters have an id of their own; sizes and colours are those of the film."""
        context, order, sets = CodecContext.create("libx264", "w"), self._order, self._found.sets
        assert isinstance(context, VideoCodecContext)
        for name, value in self._shape.items():
            setattr(context, name, value)
        context.time_base, context.framerate = Fraction(1, order.scale), plausible_rate(order.track.rate)
        context.sample_aspect_ratio = order.track.sar
        context.flags |= Flags.global_header
        own = {"bf": "0", "g": "250", "profile": _PROFILES.get(sets.sps[0][1], "high")}
        context.options = x264_options(CRF) | own | {"x264-params": f"cpu-independent=1:sps-id={sets.free_id()}"}
        context.open()
        return context

    def _encode(self, span: Span) -> None:
        if not any(span.start <= t < span.end for t in self._found.times):
            return
        encoder, order = self._encoder(), self._order
        for frame in decode(order.path, order.facts, span, on_damage=order.hidden.append):
            pts = frame.pts or 0
            frame.pts, frame.time_base = order.ticks(pts - self._zero), Fraction(1, order.scale)
            frame.pict_type = PictureType.NONE
            self._take(encoder.encode(frame), pts)
        self._take(encoder.encode(None), span.end)

    def _take(self, packets: "list[Packet[VideoStream]]", reached: int) -> None:
        for packet in packets:
            self._mux(to_avcc(bytes(packet), 0), packet.pts or 0, packet.is_keyframe)
        self._track.reached(reached)

    def _mux(self, data: bytes, ticks: int, key: bool) -> None:
        packet = Packet(data)
        packet.pts, packet.dts, packet.time_base = ticks, next(self._dts), Fraction(1, self._order.scale)
        packet.is_keyframe, packet.stream = key, self._stream
        self._track.mux(packet)
