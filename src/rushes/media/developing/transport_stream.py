"""The proxy as MPEG transport stream: picture and sound in one stream, cut into files at its key frames, copied."""

import heapq
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import av
from av.bitstream import BitStreamFilterContext
from av.container import InputContainer
from av.packet import Packet

from rushes.media.open import create_segments, open_footage, translate_errors

_PLAYLIST = "index.m3u8"


def write(folder: Path, pieces: Sequence[Path], sounds: Sequence[Path]) -> list[Path]:
    """Write `index.m3u8` and `segment_00000.ts`, ... into a new folder; the files in order, the playlist first.

    `pieces` are the fragmented MP4s of the chunks in order, `sounds` that of the sound if there is any.
    """
    folder.mkdir()
    with translate_errors("the proxy"), ExitStack() as opened:
        videos = [opened.enter_context(open_footage(piece)) for piece in pieces]
        audios = [opened.enter_context(open_footage(sound)) for sound in sounds]
        if videos or audios:
            _mux(folder, videos, audios)
    return sorted(folder.iterdir())


def _mux(folder: Path, videos: list[InputContainer], audios: list[InputContainer]) -> None:
    with create_segments(folder / _PLAYLIST, folder / "segment_%05d.ts") as out:
        tracks = []
        if videos:
            picture = out.add_stream_from_template(videos[0].streams.video[0])
            tracks.append(_timed(chain.from_iterable(map(_annex_b, videos)), picture))
        for audio in audios:
            sound = out.add_stream_from_template(audio.streams.audio[0])
            tracks.append(_timed((p for p in audio.demux(audio=0) if p.dts is not None), sound))
        for _, _, packet in heapq.merge(*tracks, key=lambda row: row[:2]):
            out.mux(packet)


def _annex_b(piece: InputContainer) -> Iterator["Packet[Any]"]:
    """Its pictures with the parameter sets of this piece in front of each key frame."""
    stream = piece.streams.video[0]
    convert = BitStreamFilterContext("h264_mp4toannexb", stream)
    for packet in piece.demux(stream):
        if packet.dts is not None:
            yield from convert.filter(packet)
    yield from convert.filter(None)


def _timed(packets: Iterator["Packet[Any]"], to: av.stream.Stream) -> Iterator[tuple[float, int, "Packet[Any]"]]:
    for packet in packets:
        at = float((packet.dts or 0) * packet.time_base)
        packet.stream = to
        yield at, to.index, packet
