"""Smart cut: where the codec allows, only the first and the last GOP are encoded, the rest is copied."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile, islice

import numpy as np
from av.packet import Packet
from av.video.stream import VideoStream

from rushes.domain.span import Span
from rushes.domain.video import Footage, VideoTrack
from rushes.media.open import open_footage, track_limits, video_stream
from rushes.media.reading.nal import ParameterSets, is_idr, parameter_sets

_SEEK_BACK_SECONDS = (0, 1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class CutPoints:
    """A clip in three parts: encoded up to `head`, copied up to `tail`, encoded again to the end."""

    head: int
    tail: int
    copied: int  # packets
    times: "array[int]"  # of all its frames, in order
    delay: int  # reorder depth of the copied part, in frames
    sets: ParameterSets
    seek: int  # where reading begins


def find_cut_points(path: Footage, track: VideoTrack, span: Span) -> CutPoints | None:
    """Where to cut, or None where only a full encode is exact."""
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
            if marks.begin(packets, span.start):  # a seek may land too late
                return _choose(marks, span, track, seek) if marks.add_all(packets) else None
    return None


def copied_packets(path: Footage, track: VideoTrack, found: CutPoints) -> "Iterator[Packet[VideoStream]]":
    """The packets between head and tail, in decode order."""
    with open_footage(path) as container:
        stream = video_stream(container, track_limits(track))
        assert stream is not None
        container.seek(found.seek, stream=stream, backward=True)
        after = dropwhile(lambda packet: packet.pts != found.head, container.demux(stream))
        yield from islice(after, found.copied)


class _PacketScan:
    """What matters of packets, in eight bytes each: ten hours have a million."""

    def __init__(self, sets: ParameterSets) -> None:
        self.sets = sets
        self._known = {*sets.sps, *sets.pps}
        self.order = array("q")  # pts in decode order
        self.entries = array("q")  # numbers of the IDR packets
        self.foreign = array("q")  # of packets that are hidden, or have parameter sets that the header lacks

    def begin(self, packets: "Iterator[Packet[VideoStream]]", latest: int) -> bool:
        """Take the first packet; whether it is an IDR not later than that time."""
        first = next(packets, None)
        return first is not None and self._add(first) and bool(self.entries) and self.order[0] <= latest

    def add_all(self, packets: "Iterator[Packet[VideoStream]]") -> bool:
        """Take the others; whether each has a pts."""
        return all(map(self._add, packets))

    def _add(self, packet: "Packet[VideoStream]") -> bool:
        if packet.pts is None:
            return False
        data, length_size, number = bytes(packet), self.sets.length_size, len(self.order)
        if packet.is_discard or packet.is_corrupt or not parameter_sets(data, length_size) <= self._known:
            self.foreign.append(number)
        if packet.is_keyframe and is_idr(data, length_size):
            self.entries.append(number)
        self.order.append(packet.pts)
        return True


def _is_yuv420(stream: VideoStream) -> bool:
    return stream.codec_context.pix_fmt in {"yuv420p", "yuvj420p"}


def _packets_up_to(packets: "Iterator[Packet[VideoStream]]", span: Span) -> "Iterator[Packet[VideoStream]]":
    """Packets up to the last that could be shown in the span."""
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
    if not np.array_equal(np.sort(middle), inside) or any(first <= n < last for n in marks.foreign):
        return None
    delay = int((np.arange(len(middle)) - np.searchsorted(inside, middle, "right")).max()) + 1
    return CutPoints(head, tail, len(middle), array("q", times.tobytes()), delay, marks.sets, seek)
