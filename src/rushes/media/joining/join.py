"""One film from the pieces of its chunks, with the sound, the chapters and the subtitles of the original, verified.

Nothing is decoded that can be copied, and memory stays constant.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from av.container import InputContainer, OutputContainer
from av.packet import Packet

from rushes.domain.errors import TryAgain
from rushes.domain.video import Footage, VideoFacts, VideoTrack
from rushes.media.joining.packets import (
    COPYABLE_CODECS,
    TEXT_CODECS,
    PieceFile,
    add_subtitle_stream,
    add_video_stream,
    copied_packets,
    encoded_packets,
    plain_text,
    video_packets,
)
from rushes.media.open import create_file, open_footage, short_text, translate_errors
from rushes.media.subtitles import Cue
from rushes.media.timeline import movie_timescale, timescale

_MAX_ROUNDING = Fraction(1, 500)  # seconds: containers round the times of sound
_MAX_CHAPTERS = 1000
# Seconds: the last packet may not say how long it lasts, and an encoder fills its own.
_MAX_LAST_PACKET = Fraction(1, 5)


@dataclass(frozen=True, slots=True)
class FilmContents:
    """What a film holds: pictures, their summed times in ticks, where each track of sound ends, in seconds."""

    frames: int
    times: int
    sounds: tuple[Fraction, ...]
    texts: tuple[Cue, ...] = ()  # of its first track of subtitles


def join(
    source: Footage,
    facts: VideoFacts,
    parts: Sequence[PieceFile],
    layout: str,
    out: Path,
    on_progress: Callable[[float], None] = lambda _done: None,
) -> FilmContents:
    """Write the film; `layout` says how two views lie in its pictures ("" if in none of the known ways).

    Raises:
        TryAgain: what was written is not what was given.
    """
    track = facts.video
    assert track is not None
    scale = timescale(track.base)
    movie = movie_timescale(scale, *(sound.rate for sound in facts.audio))
    scales = {"video_track_timescale": str(scale), "movie_timescale": str(movie)}
    options = {"strict": "unofficial", "movflags": "+faststart", **scales}
    with open_footage(source) as original, create_file(out, options) as film:
        made = _FilmWriter(film, original, source, facts, track).write(parts, layout, on_progress)
    _check_read_back(made, read_back(out))
    _check_audio_ends(made, facts)
    return made


class _FilmWriter:
    """A film being written."""

    def __init__(
        self, film: OutputContainer, original: InputContainer, source: Footage, facts: VideoFacts, track: VideoTrack
    ) -> None:
        self._film, self._original, self._source, self._facts, self._track = film, original, source, facts, track
        self._zero = facts.start
        self._ends: dict[int, Fraction] = {}
        self._texts: dict[int, list[Cue]] = {}

    def write(self, parts: Sequence[PieceFile], layout: str, on_progress: Callable[[float], None]) -> FilmContents:
        """All of it, in order of time."""
        scale, base = timescale(self._track.base), self._track.base
        frames = times = 0
        stream = add_video_stream(self._film, parts[0].file, layout)
        shown = video_packets(parts, stream, base, self._zero, scale)
        rest = self._rest()
        self._film.metadata.update({"title": self._facts.title} if self._facts.title else {})
        self._film.set_chapters(_chapters(self._original, self._zero))
        for packet in heapq.merge(shown, *rest, key=_decode_time):
            if packet.stream is stream:
                frames, times = frames + 1, times + (packet.pts or 0)
                on_progress(float((packet.pts or 0) / (scale * max(self._facts.duration, Fraction(1, 1000)))))
            else:
                self._note(packet)
            self._film.mux(packet)
        texts = tuple(self._texts[min(self._texts)]) if self._texts else ()
        return FilmContents(frames, times, tuple(self._ends[n] for n in sorted(self._ends)), texts)

    def _note(self, packet: Packet) -> None:  # type: ignore[type-arg]
        if packet.stream.type == "audio":
            self._ends[packet.stream.index] = _end(packet)
        elif lines := plain_text(bytes(packet), "mov_text"):
            cue = Cue(packet.pts or 0, int(_end(packet) * 1000), tuple(lines.splitlines()))
            self._texts.setdefault(packet.stream.index, []).append(cue)

    def _rest(self) -> list[Iterator[Packet]]:  # type: ignore[type-arg]
        """Sound as it is where the container can hold it, else as AAC; subtitles that are text."""
        found: list[Iterator[Packet]] = []  # type: ignore[type-arg]
        taken = {}
        for track in self._facts.audio:
            stream = self._original.streams[track.index]
            if track.codec in COPYABLE_CODECS:
                taken[track.index] = self._film.add_stream_from_template(stream)
                taken[track.index].metadata.update(_language(stream.metadata))
            else:
                found.append(encoded_packets(self._film, self._source, track, self._zero))
        texts = [s for s in self._original.streams.subtitles if s.codec_context and s.codec_context.name in TEXT_CODECS]
        for stream in texts:
            taken[stream.index] = add_subtitle_stream(self._film, _language(stream.metadata))
        return [*found, copied_packets(self._original, taken, self._zero)] if taken else found


def read_back(path: Path) -> FilmContents:
    """What a joined film holds, read from its packets."""
    frames, times, ends = 0, 0, dict[int, Fraction]()
    with open_footage(path) as film, translate_errors(path.name):
        for packet in film.demux(*film.streams.video[:1], *film.streams.audio):
            if packet.dts is None:
                continue
            if packet.stream.type == "video":
                frames, times = frames + 1, times + (packet.pts or 0)
            else:
                ends[packet.stream.index] = _end(packet)
    return FilmContents(frames, times, tuple(ends[n] for n in sorted(ends)))


def _check_read_back(made: FilmContents, found: FilmContents) -> None:
    same = (made.frames, made.times, len(made.sounds)) == (found.frames, found.times, len(found.sounds))
    if not same or any(abs(a - b) > _MAX_ROUNDING for a, b in zip(made.sounds, found.sounds, strict=True)):
        raise TryAgain(f"the joined video is incomplete: {made} was written, {found} was found")


def _check_audio_ends(made: FilmContents, facts: VideoFacts) -> None:
    """Every track of sound must end where it ends in the original."""
    ends = [track.end * track.base - facts.start for track in facts.audio]
    if len(ends) != len(made.sounds) or any(
        abs(a - b) > _MAX_LAST_PACKET for a, b in zip(made.sounds, ends, strict=True)
    ):
        told = [[f"{float(end):.3f}" for end in some] for some in (ends, made.sounds)]
        raise TryAgain(f"sound is missing: its tracks end at {told[0]} s in the original, at {told[1]} s in the result")


def _decode_time(packet: Packet) -> Fraction:  # type: ignore[type-arg]
    return (packet.dts if packet.dts is not None else packet.pts or 0) * packet.time_base


def _end(packet: Packet) -> Fraction:  # type: ignore[type-arg]
    return ((packet.pts or 0) + (packet.duration or 0)) * packet.time_base


def _chapters(original: InputContainer, zero: Fraction) -> list[Any]:
    found: list[Any] = []
    for n, chapter in enumerate(original.chapters()[:_MAX_CHAPTERS], 1):
        base = chapter["time_base"] or Fraction(1, 1000)
        start, end = (max(0, int((at * base - zero) * 1000)) for at in (chapter["start"], chapter["end"]))
        title = {k: short_text(v) for k, v in chapter["metadata"].items() if k == "title"}
        if end > start:
            row = {"id": n, "start": start, "end": end, "time_base": Fraction(1, 1000), "metadata": title}
            found.append(row)
    return found


def _language(metadata: dict[str, str]) -> dict[str, str]:
    return {k: short_text(v) for k, v in metadata.items() if k == "language"}
