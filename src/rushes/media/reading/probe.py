"""What a file holds: identity by content, times by packets; headers are not trusted."""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import av
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream

from rushes.domain.errors import BadMedia
from rushes.domain.span import clock, to_us
from rushes.domain.video import AudioTrack, Footage, VideoFacts, VideoTrack
from rushes.media.open import LIMITS, Limits, check_pixels, is_listed, open_bytes, open_footage, video_stream
from rushes.media.reading.mp4_boxes import missing_bytes
from rushes.media.reading.stream_times import StreamTimes, is_seekable

Progress = Callable[[float], None]
_DECODED_FRAMES = 12  # to learn what only a decoder knows


def probe(path: Footage, on_progress: Progress = lambda _: None, limits: Limits = LIMITS) -> VideoFacts:
    """Read a file once for its hash and once for its times.

    Raises:
        BadMedia: it is not footage, is not safe to decode, or is incomplete.
        SourceMissing: it is missing, or may not be read.
    """
    with open_footage(path, limits):  # refuse other files before reading gigabytes
        pass
    _refuse_if_cut_off(path)
    sha256, size = hash_file(path, lambda done: on_progress(done / 2))
    with open_footage(path, limits) as container:
        return _measure(container, path.name, (sha256, size), limits, lambda done: on_progress(0.5 + done / 2))


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


def _refuse_if_cut_off(path: Footage) -> None:
    with open_bytes(path) as file:
        missing = missing_bytes(file)
    if missing:
        raise BadMedia(f"{path.name} is truncated: {missing} bytes are missing", "Copy it again from its source.")


def _measure(
    container: InputContainer, name: str, identity: tuple[str, int], limits: Limits, on_progress: Progress
) -> VideoFacts:
    video = video_stream(container, limits)
    sounds = [s for s in container.streams.audio if is_listed(s)][: limits.streams - 1]
    times = _read_packets(container, video, sounds, identity[1], on_progress)
    audio = tuple(track for s in sounds if (track := _audio_track(s, times[s.index])))
    picture = _video_track(container, video, times[video.index], bool(audio), limits) if video else None
    if picture is None and not audio:
        raise BadMedia(f"{name} has no video and no audio")
    facts = VideoFacts(
        *identity, container.format.name, picture, audio, container.metadata.get("title", ""), _shot_at(container)
    )
    if facts.duration > limits.seconds:
        raise BadMedia(
            f"{name} lasts {clock(int(facts.duration * 1_000_000), 0)}: the limit is {limits.seconds // 3600} hours",
            "If that is wrong, remux it; else raise the limit (max_hours).",
        )
    return facts


def _read_packets(
    container: InputContainer, video: VideoStream | None, sounds: list[AudioStream], size: int, on_progress: Progress
) -> dict[int, StreamTimes]:
    streams = ([video] if video else []) + sounds
    times = {s.index: StreamTimes(s.time_base or Fraction(1, 1000)) for s in streams}
    if streams:
        for number, packet in enumerate(container.demux(*streams)):
            if packet.size:
                times[packet.stream_index].add(packet)
            if number % 1000 == 0 and packet.pos is not None and packet.pos > 0:
                on_progress(min(1.0, packet.pos / size))
    return times


def _audio_track(stream: AudioStream, times: StreamTimes) -> AudioTrack | None:
    if times.end <= times.start:
        return None
    context = stream.codec_context
    if not context.rate:
        raise BadMedia("its audio has no sample rate")
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


def _video_track(
    container: InputContainer, stream: VideoStream, times: StreamTimes, has_sound: bool, limits: Limits
) -> VideoTrack | None:
    if not times.frames or (times.frames == 1 and times.end <= times.start and has_sound):
        return None  # nothing, or one picture without duration beside the audio: a cover
    if times.end <= times.start:
        raise BadMedia("its video has no duration")
    if times.jumps_back is not None:
        raise BadMedia(
            f"its timestamps jump back after {clock(to_us(times.jumps_back, times.base))}",
            "Two recordings were concatenated: split or re-export them.",
        )
    decoded = _decode_first(container, stream, limits)
    damaged = bool(times.corrupt or times.untimed)
    seekable = not damaged and is_seekable(container, stream, times)
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


def _decode_first(container: InputContainer, stream: VideoStream, limits: Limits) -> _DecodedFacts:
    container.seek(0, backward=True)
    frames = list(_first_frames(container, stream))
    if not frames:
        raise BadMedia("none of its first frames can be decoded")
    times = [f.pts for f in frames if f.pts is not None]
    if len(times) < len(frames) or times != sorted(set(times)):
        raise BadMedia("its frames have no timestamps", "Remux it into MP4 or Matroska with another program.")
    first = frames[0]
    check_pixels(first.width, first.height, limits)
    return _DecodedFacts(first.width, first.height, -first.rotation % 360, any(f.interlaced_frame for f in frames))


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
    return "" if language == "und" else language


def _shot_at(container: InputContainer) -> str:
    text = container.metadata.get("creation_time", "")
    return text if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", text) else ""
