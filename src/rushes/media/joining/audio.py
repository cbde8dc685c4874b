"""The audio and subtitles of a joined film: packets of the original in film time."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain

from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.subtitles.stream import SubtitleStream

from rushes.domain.errors import TryAgain
from rushes.domain.video import AudioTrack, Footage
from rushes.media.encoders import AacEncoder
from rushes.media.joining.timed_text import plain_text, to_mov_text
from rushes.media.reading.sample_timeline import SampleTimeline

COPYABLE_CODECS = frozenset({"aac", "mp3", "mp3float", "ac3", "eac3", "alac", "opus", "libopus", "flac"})

_MAX_ROUNDING = 64  # samples, by resampling


def add_subtitle_stream(film: OutputContainer, metadata: Mapping[str, str]) -> SubtitleStream:
    """Add a mov_text stream."""
    stream = film.add_mux_stream("mov_text")
    assert isinstance(stream, SubtitleStream)
    stream.time_base = Fraction(1, 1000)
    stream.metadata.update(metadata)
    return stream


def copied_packets(original: InputContainer, taken: Mapping[int, Stream], zero: Fraction) -> Iterator["Packet[Stream]"]:
    """The packets of these streams, each for its stream of the film."""
    for packet in original.demux([original.streams[n] for n in taken]):
        if packet.dts is None or packet.pts is None or not packet.size:
            continue
        target = taken[packet.stream.index]
        yield (
            _subtitle_packet(packet, target, zero)
            if packet.stream.type == "subtitle"
            else _shift_packet(packet, target, zero)
        )


def encoded_packets(
    film: OutputContainer, source: Footage, track: AudioTrack, zero: Fraction
) -> Iterator["Packet[AudioStream]"]:
    """A track that MP4 cannot hold, as AAC."""
    encoder = AacEncoder(film, track)
    if track.language:
        encoder.stream.metadata["language"] = track.language
    return _encode(encoder, SampleTimeline(source, track), zero)


def _encode(encoder: AacEncoder, timeline: SampleTimeline, zero: Fraction) -> Iterator["Packet[AudioStream]"]:
    for frame in chain(timeline.frames(), [None]):
        yield from encoder.encode(frame, round((timeline.start - zero) * encoder.rate))
    _check(encoder.samples, ((timeline.clock or timeline.start) - timeline.start) * encoder.rate)


def _check(written: int, decoded: Fraction) -> None:
    """Raise unless every decoded sample was encoded."""
    if abs(written - decoded) > _MAX_ROUNDING:
        raise TryAgain(f"{written} samples of audio were encoded, {round(decoded)} were decoded")


def _subtitle_packet(packet: "Packet[Stream]", target: Stream, zero: Fraction) -> "Packet[Stream]":
    text = plain_text(bytes(packet), packet.stream.codec_context.name)
    made: Packet[Stream] = Packet(to_mov_text(text))
    start = ((packet.pts or 0) * packet.time_base - zero) * 1000
    made.pts = made.dts = max(0, round(start))
    made.duration = round((packet.duration or 0) * packet.time_base * 1000)
    made.time_base, made.stream = Fraction(1, 1000), target
    return made


def _shift_packet(packet: "Packet[Stream]", target: Stream, zero: Fraction) -> "Packet[Stream]":
    shift = round(zero / packet.time_base)
    packet.pts, packet.dts, packet.stream = (packet.pts or 0) - shift, (packet.dts or 0) - shift, target
    return packet
