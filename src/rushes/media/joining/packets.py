"""The packets of a joined film in its own time: pictures of every piece, sound and subtitles of the original."""

import heapq
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from itertools import chain

from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.subtitles.stream import SubtitleStream
from av.video.stream import VideoStream

from rushes.domain.errors import TryAgain
from rushes.domain.video import AudioTrack, Footage
from rushes.media.encoders import AacEncoder
from rushes.media.open import create_matroska, open_footage, read_matroska
from rushes.media.reading.audio import SampleTimeline

TEXT_CODECS = frozenset({"mov_text", "subrip", "srt", "text", "webvtt", "ass", "ssa"})
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|\{[^{}]*\}")
_ASS_FIELDS = 8  # commas before the text of a line
_MAX_BYTES = 4000  # bytes
COPYABLE_CODECS = frozenset({"aac", "mp3", "mp3float", "ac3", "eac3", "alac", "opus", "libopus", "flac"})
_MAX_ROUNDING = 64  # samples, by which resampling may be off
_REORDER_DEPTH = 2  # packets that come before their turn: the B-frames of our encoder


def plain_text(data: bytes, codec: str) -> str:
    """What a packet of subtitles says, without its dress."""
    if codec == "mov_text":
        (length,) = struct.unpack(">H", data[:2].rjust(2, b"\0"))
        data = data[2 : 2 + length]
    said = data.decode("utf-8", "replace")
    if codec in {"ass", "ssa"}:
        said = said.split(",", _ASS_FIELDS)[-1].replace("\\N", "\n").replace("\\n", "\n")
    return _TAG.sub("", said).replace("\0", "").strip()


def to_mov_text(said: str) -> bytes:
    """A sample of timed text as an MP4 holds it."""
    data = said.encode()[:_MAX_BYTES].decode("utf-8", "ignore").encode()
    return struct.pack(">H", len(data)) + data


def add_subtitle_stream(film: OutputContainer, metadata: Mapping[str, str]) -> SubtitleStream:
    """A stream for subtitles."""
    stream = film.add_mux_stream("mov_text")
    assert isinstance(stream, SubtitleStream)
    stream.time_base = Fraction(1, 1000)
    stream.metadata.update(metadata)
    return stream


def copied_packets(original: InputContainer, taken: Mapping[int, Stream], zero: Fraction) -> Iterator["Packet[Stream]"]:
    """The packets of these streams, each into its own of the film."""
    for packet in original.demux([original.streams[n] for n in taken]):
        if packet.dts is None or packet.pts is None or not packet.size:
            continue
        convert = _subtitle_packet if packet.stream.type == "subtitle" else _shift_packet
        yield convert(packet, taken[packet.stream.index], zero)


def encoded_packets(
    film: OutputContainer, source: Footage, track: AudioTrack, zero: Fraction
) -> Iterator["Packet[AudioStream]"]:
    """A track that the container cannot hold, as AAC."""
    encoder = AacEncoder(film, track)
    if track.language:
        encoder.stream.metadata["language"] = track.language
    return _encode(encoder, SampleTimeline(source, track), zero)


def _encode(encoder: AacEncoder, line: SampleTimeline, zero: Fraction) -> Iterator["Packet[AudioStream]"]:
    """All packets of a track; every sample that was decoded must have been encoded."""
    for frame in chain(line.frames(), [None]):
        yield from encoder.encode(frame, round((line.start - zero) * encoder.rate))
    given, heard = encoder.samples, ((line.clock or line.start) - line.start) * encoder.rate
    if given and abs(given - heard) > _MAX_ROUNDING:
        raise TryAgain(f"{given} samples of sound were encoded, {round(heard)} were decoded")


def _subtitle_packet(packet: "Packet[Stream]", target: Stream, zero: Fraction) -> "Packet[Stream]":
    said = plain_text(bytes(packet), packet.stream.codec_context.name)
    made: Packet[Stream] = Packet(to_mov_text(said))
    start = ((packet.pts or 0) * packet.time_base - zero) * 1000
    made.pts = made.dts = max(0, round(start))
    made.duration = round((packet.duration or 0) * packet.time_base * 1000)
    made.time_base, made.stream = Fraction(1, 1000), target
    return made


def _shift_packet(packet: "Packet[Stream]", target: Stream, zero: Fraction) -> "Packet[Stream]":
    shift = round(zero / packet.time_base)
    packet.pts, packet.dts, packet.stream = (packet.pts or 0) - shift, (packet.dts or 0) - shift, target
    return packet


@dataclass(frozen=True, slots=True)
class PieceFile:
    """A piece of the film and its span in ticks of the picture's time base."""

    file: Footage  # opened when it is read: copies of far pieces do not all fit on this machine
    start: int
    end: int


def add_video_stream(film: OutputContainer, piece: Footage, layout: str) -> VideoStream:
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
        with open_footage(part.file) as piece:
            for packet in piece.demux(video=0):
                if packet.pts is not None and packet.dts is not None:
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    yield packet
