"""Smart cut: where the codec allows, only the first and the last group of pictures are encoded, the rest is copied."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice

from av.packet import Packet
from av.video.stream import VideoStream

from rushes.domain.span import Span
from rushes.domain.video import Footage, VideoTrack
from rushes.media.nal import Sets, is_entry, parameters
from rushes.media.open import limits_of, open_footage, video_stream

_BACK_SECONDS = (0, 1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Seams:
    """A clip in three parts: encoded up to `head`, copied from there to `tail`, encoded again to its end."""

    head: int
    tail: int
    copied: int  # packets
    times: tuple[int, ...]  # of all its frames, in order
    delay: int  # by how many frames the decoder of the copied part lags
    sets: Sets
    seek: int  # from where all of it is read


def seams(path: Footage, track: VideoTrack, span: Span) -> Seams | None:
    """Where to cut, or None where only encoding all of it is exact."""
    if track.codec != "h264" or track.interlaced or track.damaged or not track.seekable:
        return None
    with open_footage(path) as container:
        stream = video_stream(container, limits_of(track))
        if stream is None or not _plain(stream):
            return None
        sets = Sets.of(stream.codec_context.extradata or b"")
        for back in _BACK_SECONDS if sets.sps else ():
            seek = span.start - int(back / track.base)
            container.seek(seek, stream=stream, backward=True)
            marks = (_Mark.of(packet, sets) for packet in _reaching(container.demux(stream), span))
            first = next(marks, None)
            if first and first.entry and (first.pts or 0) <= span.start:  # a seek may land late
                return _chosen([first, *marks], sets, span, track, seek)
    return None


def copied(path: Footage, track: VideoTrack, found: Seams) -> "Iterator[Packet[VideoStream]]":
    """The packets between the seams, in the order of decoding."""
    with open_footage(path) as container:
        stream = video_stream(container, limits_of(track))
        assert stream is not None
        container.seek(found.seek, stream=stream, backward=True)
        after = dropwhile(lambda packet: packet.pts != found.head, container.demux(stream))
        yield from islice(after, found.copied)


@dataclass(frozen=True, slots=True)
class _Mark:
    """What matters of a packet."""

    pts: int | None
    entry: bool
    strange: bool  # hidden, or with parameters that the header does not have

    @staticmethod
    def of(packet: "Packet[VideoStream]", sets: Sets) -> "_Mark":
        data = bytes(packet)
        known = {*sets.sps, *sets.pps}
        strange = packet.is_discard or packet.is_corrupt or not parameters(data, sets.prefix) <= known
        return _Mark(packet.pts, packet.is_keyframe and is_entry(data, sets.prefix), strange)


def _plain(stream: VideoStream) -> bool:
    return stream.codec_context.pix_fmt in {"yuv420p", "yuvj420p"}


def _reaching(packets: "Iterator[Packet[VideoStream]]", span: Span) -> "Iterator[Packet[VideoStream]]":
    """Packets until all that could be shown in the span have come by."""
    for packet in packets:
        if packet.size == 0 or (packet.dts is not None and packet.dts > span.end):
            return
        yield packet


def _chosen(marks: Sequence[_Mark], sets: Sets, span: Span, track: VideoTrack, seek: int) -> Seams | None:
    order = [m.pts for m in marks if m.pts is not None]
    entries = [m.pts for m in marks if m.entry and m.pts is not None and span.start <= m.pts <= span.end]
    whole = span.end >= track.end
    if len(order) < len(marks) or not entries or (len(entries) == 1 and not whole):
        return None
    head, tail = entries[0], span.end if whole else entries[-1]
    first = order.index(head)
    last = len(order) if whole else order.index(tail)
    times = sorted({t for t in order if span.start <= t < span.end})
    middle, inside = order[first:last], [t for t in times if head <= t < tail]
    if sorted(middle) != inside or any(m.strange for m in marks[first:last]):
        return None
    delay = max(n - bisect_right(inside, pts) + 1 for n, pts in enumerate(middle))
    return Seams(head, tail, len(middle), tuple(times), delay, sets, seek)
