"""What a file holds: identity by content, times by packets; headers are not trusted."""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import av
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.error import FFmpegError
from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from rushes.domain.errors import BadMedia
from rushes.domain.span import clock, to_us
from rushes.domain.video import AudioTrack, Footage, VideoFacts, VideoTrack
from rushes.media.budget import Budget, run_within
from rushes.media.open import (
    LIMITS,
    Limits,
    check_pixels,
    check_rate,
    is_listed,
    open_bytes,
    open_footage,
    short_text,
    video_stream,
)
from rushes.media.originals import LocalOriginal
from rushes.media.reading.mp4_boxes import missing_bytes
from rushes.media.timeline import RESTART_PERIOD, PeriodicSampler

_SEEK_TESTS = 8  # key frames to which seeking is tested
Progress = Callable[[float], None]
_DECODED_FRAMES = 12  # to learn what only a decoder knows
_LARGE_HOLE = 1 << 30  # bytes


@dataclass(slots=True)
class StreamTimes:
    """What the packets of a stream tell; those hidden by edit lists or before the first key frame do not count."""

    base: Fraction
    frames: int = 0
    start: int = 0
    untimed: int = 0  # packets without a pts
    corrupt: int = 0
    jumps_back: int | None = None  # pts of a key frame that an earlier one follows
    sizes: dict[int, int] = field(default_factory=dict)  # of the key frames where chunks may begin, in bytes, by pts
    _last_key: int | None = None
    _sampler: PeriodicSampler = field(init=False)
    _origin: int | None = None  # pts of the first key frame, even if hidden
    _last: int = 0  # latest pts
    _before: int = 0  # the latest but one
    _length: int = 0  # duration of the latest

    def __post_init__(self) -> None:
        self._sampler = PeriodicSampler(RESTART_PERIOD, self.base)

    @property
    def end(self) -> int:
        """The end of the last frame; without a duration it lasts as long as the one before."""
        if not self.frames:
            return self.start
        return self._last + (self._length or self._last - self._before)

    @property
    def seconds(self) -> Fraction:
        """How long it lasts so far."""
        return (self.end - self.start) * self.base

    def chunk_starts(self) -> tuple[int, ...]:
        """Where chunks may begin: the start, then the first key frame at or after each multiple of 5 s."""
        return (self.start, *(k for k in self.sizes if k > self.start))

    def add(self, packet: "Packet[Stream]") -> None:
        """Count one packet."""
        self.corrupt += packet.is_corrupt
        if packet.pts is None:
            self.untimed += self._origin is not None
            return
        if packet.is_keyframe:
            self._add_key(packet.pts, packet.size, packet.is_discard)
        if self._origin is None or packet.pts < self._origin or packet.is_discard:
            return
        self._add_shown(packet.pts, packet.duration or 0)

    def _add_key(self, pts: int, size: int, hidden: bool) -> None:
        if self._origin is None:
            self._origin = pts
        if self._last_key is not None and pts <= self._last_key and self.jumps_back is None:
            self.jumps_back = self._last_key
        self._last_key = pts
        if not hidden and self._sampler.is_due(pts):
            self.sizes[pts] = size

    def _add_shown(self, pts: int, length: int) -> None:
        self.start = pts if not self.frames else min(self.start, pts)
        self._before = pts if not self.frames else self._before
        self.frames += 1
        if pts >= self._last or self.frames == 1:
            self._before, self._last, self._length = (self._last if self.frames > 1 else pts), pts, length
        elif pts > self._before:
            self._before = pts


def is_seekable(container: InputContainer, stream: VideoStream, times: StreamTimes) -> bool:
    """Whether key frames have the same pts after a seek as in one pass; in old formats FFmpeg guesses them."""
    if container.format.name == "mpeg":  # program streams give a pts to some frames only
        return False
    keys = times.chunk_starts()[1:]
    few = keys[:: max(1, len(keys) // _SEEK_TESTS)]
    return all(_seeks_to(container, stream, times, key) for key in few)


def _seeks_to(container: InputContainer, stream: VideoStream, times: StreamTimes, key: int) -> bool:
    for back in (0, 1, 2, 4, 8):
        container.seek(key - int(back / times.base), stream=stream, backward=True)
        for packet in container.demux(stream):
            if packet.pts == key and packet.is_keyframe:
                return packet.size == times.sizes[key]
            if packet.pts is None or packet.pts > key + 1 / times.base:
                break
    return False


def probe(path: Footage, on_progress: Progress = lambda _: None, limits: Limits = LIMITS) -> VideoFacts:
    """Read a file once for its hash and once for its times, within a budget.

    Raises:
        BadMedia: it is not footage, is not safe to decode, or is incomplete.
        OverBudget: it takes too much time or memory; the thread that reads it is left behind.
        SourceMissing: it is missing, or may not be read.
    """
    with open_bytes(path) as file:
        budget = Budget.of(file.seek(0, os.SEEK_END))
    return run_within(budget, lambda: _probe(path, on_progress, limits, budget))


def _probe(path: Footage, on_progress: Progress, limits: Limits, budget: Budget) -> VideoFacts:
    with open_footage(path, limits, budget):  # refuse other files before reading gigabytes
        pass
    _refuse_if_incomplete(path)
    sha256, size = hash_file(path, lambda done: on_progress(done / 2))
    with open_footage(path, limits, budget) as container:
        file = _OpenFile(container, path.name, limits, budget)
        return _measure(file, (sha256, size), lambda done: on_progress(0.5 + done / 2))


@dataclass(frozen=True, slots=True)
class _OpenFile:
    """A file that is measured, and how much it may ask for."""

    container: InputContainer
    name: str
    limits: Limits
    budget: Budget


def hash_file(path: Footage, on_progress: Progress = lambda _: None) -> tuple[str, int]:
    """sha256 (hex) and size of a file, read once."""
    sha, done = hashlib.sha256(), 0
    with open_bytes(path) as file:
        total = file.seek(0, os.SEEK_END) or 1
        file.seek(0)
        while block := file.read(1 << 20):
            sha.update(block)
            done += len(block)
            on_progress(done / total)
    return sha.hexdigest(), done


def _refuse_if_incomplete(path: Footage) -> None:
    with open_bytes(path) as file:
        missing = missing_bytes(file)
        unwritten = isinstance(path, Path | LocalOriginal) and _is_mostly_holes(os.fstat(file.fileno()))
    if unwritten:
        raise BadMedia(f"most of {path.name} was never written", "Copy it again from its source.")
    if missing:
        raise BadMedia(f"{path.name} is truncated: {missing} bytes are missing", "Copy it again from its source.")


def _is_mostly_holes(stat: os.stat_result) -> bool:
    """Whether a file has far fewer blocks on disk than bytes: a copy that was broken off, or one made to be slow."""
    return stat.st_size > _LARGE_HOLE and 0 < stat.st_blocks * 512 < stat.st_size // 16


def _measure(file: _OpenFile, identity: tuple[str, int], on_progress: Progress) -> VideoFacts:
    container, limits = file.container, file.limits
    video = video_stream(container, limits)
    sounds = [s for s in container.streams.audio if is_listed(s)][: limits.streams - 1]
    times = _read_packets(file, [*([video] if video else []), *sounds], identity[1], on_progress)
    audio = tuple(track for s in sounds if (track := _audio_track(s, times[s.index], limits)))
    picture = _video_track(file, video, times[video.index], bool(audio)) if video else None
    if picture is None and not audio:
        raise BadMedia(f"{file.name} has no video and no audio")
    title = short_text(container.metadata.get("title", ""))
    facts = VideoFacts(*identity, container.format.name, picture, audio, title, _shot_at(container))
    _refuse_if_too_long(file, facts.duration)
    return facts


def _refuse_if_too_long(file: _OpenFile, seconds: Fraction) -> None:
    if seconds > file.limits.seconds:
        hint = "If that is wrong, remux it; else raise the limit (max_hours)."
        lasts = clock(int(seconds * 1_000_000), 0)
        raise BadMedia(f"{file.name} lasts {lasts}: the limit is {file.limits.seconds // 3600} hours", hint)


def _read_packets(
    file: _OpenFile, streams: Sequence[AudioStream | VideoStream], size: int, on_progress: Progress
) -> dict[int, StreamTimes]:
    times = {s.index: StreamTimes(s.time_base or Fraction(1, 1000)) for s in streams}
    sounds = {s.index for s in streams if isinstance(s, AudioStream)}
    for number, packet in enumerate(file.container.demux(*streams) if streams else ()):
        file.budget.add_packet()
        if packet.size:
            times[packet.stream_index].add(packet)
        if packet.size > file.limits.audio_packet and packet.stream_index in sounds:
            raise BadMedia(f"a packet of its audio has {packet.size} bytes, over the limit")
        if number % 1000 == 0:
            _refuse_if_too_long(file, max(t.seconds for t in times.values()))
            on_progress(min(1.0, max(0, packet.pos or 0) / size))
    return times


def _audio_track(stream: AudioStream, times: StreamTimes, limits: Limits) -> AudioTrack | None:
    if times.end <= times.start:
        return None
    context = stream.codec_context
    check_rate(context.rate or 0, limits)
    return AudioTrack(
        index=stream.index,
        codec=context.codec.canonical_name,
        rate=context.rate,
        channels=context.channels,
        base=times.base,
        start=times.start,
        end=times.end,
        language=_language(stream),
        default=bool(stream.disposition & stream.disposition.default),
    )


def _video_track(file: _OpenFile, stream: VideoStream, times: StreamTimes, has_sound: bool) -> VideoTrack | None:
    if not times.frames or (times.frames == 1 and times.end <= times.start and has_sound):
        return None  # nothing, or one picture without duration beside the audio: a cover
    if times.end <= times.start:
        raise BadMedia("its video has no duration")
    if times.jumps_back is not None:
        hint = "Two recordings were concatenated: split or re-export them."
        raise BadMedia(f"its timestamps jump back after {clock(to_us(times.jumps_back, times.base))}", hint)
    decoded = _decode_first(file, stream, times)
    damaged = bool(times.corrupt or times.untimed)
    seekable = not damaged and is_seekable(file.container, stream, times)
    return VideoTrack(
        index=stream.index,
        codec=stream.codec_context.codec.canonical_name,
        width=decoded.width,
        height=decoded.height,
        base=times.base,
        start=times.start,
        end=times.end,
        frames=times.frames,
        keys=times.chunk_starts() if seekable else (times.start,),
        rate=stream.average_rate or stream.guessed_rate,
        rotation=decoded.rotation,
        sar=stream.sample_aspect_ratio or Fraction(1),
        interlaced=decoded.interlaced,
        seekable=seekable,
        damaged=damaged,
    )


@dataclass(frozen=True, slots=True)
class _DecodedFacts:
    """What only decoded frames tell."""

    width: int
    height: int
    rotation: int
    interlaced: bool


def _decode_first(file: _OpenFile, stream: VideoStream, times: StreamTimes) -> _DecodedFacts:
    stream.codec_context.thread_count = 1  # each thread more keeps a picture more
    file.budget.add_pictures(stream.codec_context.width * stream.codec_context.height)
    file.container.seek(min(0, to_us(times.start, times.base)), backward=True)
    shown, facts = list[int | None](), None
    for frame in _first_frames(file.container, stream):
        if facts is None:
            check_pixels(frame.width, frame.height, file.limits)
            facts = _DecodedFacts(frame.width, frame.height, -frame.rotation % 360, frame.interlaced_frame)
        facts = replace(facts, interlaced=facts.interlaced or frame.interlaced_frame)
        shown.append(frame.pts)
    if facts is None:
        raise BadMedia("none of its first frames can be decoded")
    known = [pts for pts in shown if pts is not None]
    if len(known) < len(shown) or known != sorted(set(known)):
        raise BadMedia("its frames have no timestamps", "Remux it into MP4 or Matroska with another program.")
    return facts


def _first_frames(container: InputContainer, stream: VideoStream) -> Iterator[av.VideoFrame]:
    found = 0
    for number, packet in enumerate(container.demux(stream)):
        with contextlib.suppress(FFmpegError):
            for frame in packet.decode():
                found += 1
                yield frame
        if found >= _DECODED_FRAMES or number > 100 * _DECODED_FRAMES:
            return


def _language(stream: AudioStream) -> str:
    language = stream.language or ""
    return language if language != "und" and re.fullmatch(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,3}", language) else ""


def _shot_at(container: InputContainer) -> str:
    text = container.metadata.get("creation_time", "")
    return text if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?", text) else ""
