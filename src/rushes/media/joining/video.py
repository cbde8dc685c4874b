"""The video of a joined film: packets of every piece in film time, and the stereo mode tag."""

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

_REORDER_DEPTH = 2  # frames by which the B-frames of our encoder delay output


@dataclass(frozen=True, slots=True)
class PieceFile:
    """A piece of the film and its span in ticks of the video track."""

    file: Callable[[], Path]  # fetched when it is read: not all pieces fit on this machine
    start: int
    end: int


def add_video_stream(film: OutputContainer, piece: Path, layout: str) -> VideoStream:
    """A stream like that of a piece, with the stereo mode.

    FFmpeg sets that only when it reads Matroska, so a header in memory takes this detour.
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
    pieces: Sequence[PieceFile], stream: VideoStream, base: Fraction, zero: Fraction, scale: int
) -> Iterator["Packet[VideoStream]"]:
    """Packets in decode order; the last one lasts until the end of the film."""
    last: Packet[VideoStream] | None = None
    origin, lead, pending = 0, 0, list[int]()
    for count, packet in enumerate(_shifted_packets(pieces, base, zero, scale)):
        assert packet.pts is not None
        heapq.heappush(pending, packet.pts)
        origin = origin if count else packet.pts
        early = min(packet.dts or 0, origin + count - _REORDER_DEPTH)
        packet.dts = heapq.heappop(pending) if count >= _REORDER_DEPTH else early
        packet.time_base, packet.stream = Fraction(1, scale), stream
        if last is None:
            lead = packet.dts - packet.pts
        else:
            yield last
        last = packet
    if last is not None:
        end = int((pieces[-1].end * base - zero) * scale)
        last.duration = max(1, end + lead - (last.dts or 0))
        yield last


def _shifted_packets(
    pieces: Sequence[PieceFile], base: Fraction, zero: Fraction, scale: int
) -> Iterator["Packet[VideoStream]"]:
    for piece in pieces:
        shift = int((piece.start * base - zero) * scale)
        with open_footage(piece.file()) as container:
            for packet in container.demux(video=0):
                if packet.pts is not None and packet.dts is not None:
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    yield packet
