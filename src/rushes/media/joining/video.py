"""The pictures of a joined film: packets of every piece in the time of the film, and what tells players it is 3D."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path

from av.container import OutputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from rushes.media.open import create_matroska, open_footage, read_matroska

_REORDER_DEPTH = 2  # packets that come before their turn: the B-frames of our encoder


@dataclass(frozen=True, slots=True)
class PieceFile:
    """A piece of the film and its span in ticks of the picture's time base."""

    file: Callable[[], Path]  # asked for when it is read: copies of far pieces do not all fit on this machine
    start: int
    end: int


def add_video_stream(film: OutputContainer, piece: Path, layout: str) -> VideoStream:
    """A stream like that of a piece, which says how two views lie in it.

    Only a reader sets that tag, so it takes the way through a header in memory.
    """
    with open_footage(piece) as source:
        if not layout:
            return film.add_stream_from_template(source.streams.video[0])
        header = BytesIO()
        with create_matroska(header) as out:
            stream = out.add_stream_from_template(source.streams.video[0])
            stream.metadata["stereo_mode"] = layout
            packet = next(source.demux(stream.index))
            packet.stream = stream
            out.mux(packet)
    header.seek(0)
    with read_matroska(header) as read:
        return film.add_stream_from_template(read.streams.video[0])


def video_packets(
    parts: Sequence[PieceFile], stream: VideoStream, base: Fraction, zero: Fraction, scale: int
) -> Iterator["Packet[VideoStream]"]:
    """Packets in the order in which they are decoded; the last one lasts until the end of the film."""
    waiting: Packet[VideoStream] | None = None
    origin, lead, soon = 0, 0, list[int]()
    for count, packet in enumerate(_packets(parts, base, zero, scale)):
        assert packet.pts is not None
        heapq.heappush(soon, packet.pts)
        origin = origin if count else packet.pts
        early = min(packet.dts or 0, origin + count - _REORDER_DEPTH)
        packet.dts = heapq.heappop(soon) if count >= _REORDER_DEPTH else early
        packet.time_base, packet.stream = Fraction(1, scale), stream
        if waiting is None:
            lead = packet.dts - packet.pts
        else:
            yield waiting
        waiting = packet
    if waiting is not None:
        end = int((parts[-1].end * base - zero) * scale)
        waiting.duration = max(1, end + lead - (waiting.dts or 0))
        yield waiting


def _packets(parts: Sequence[PieceFile], base: Fraction, zero: Fraction, scale: int) -> Iterator["Packet[VideoStream]"]:
    for part in parts:
        shift = int((part.start * base - zero) * scale)
        with open_footage(part.file()) as piece:
            for packet in piece.demux(video=0):
                if packet.pts is not None and packet.dts is not None:
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    yield packet
