"""The only module that opens media files: allow-lists and limits for input, bit-exact options for output.

Nothing outside the allow-lists is parsed: a playlist, a list of files or a URL in disguise is refused unread.
"""

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import av
from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream

from rushes.domain.errors import BadMedia, NoRoom, SourceMissing
from rushes.domain.video import Footage, VideoTrack
from rushes.media.budget import Budget, MeteredReader
from rushes.media.sniff import why_not_footage

FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg,mxf,wav,w64,aiff,mp3,flac,aac,caf,dv"
VIDEO_CODECS = frozenset(
    """h264 hevc av1 libdav1d vp8 vp9 libvpx libvpx-vp9 mpeg1video mpeg2video mpeg4 msmpeg4 msmpeg4v2 mjpeg prores dnxhd
    h263 flv wmv1 wmv2 wmv3 vc1 theora dvvideo ffv1 cfhd vp6f rawvideo v210""".split()  # noqa: SIM905 - read as a list
)
AUDIO_CODECS = frozenset(
    """aac aac_latm mp3 mp3float mp2 mp2float ac3 eac3 dca truehd opus libopus vorbis flac alac amrnb amrwb wmav1 wmav2
    libopencore_amrnb libopencore_amrwb wmapro pcm_s16le pcm_s16be pcm_s24le pcm_s24be pcm_s32le pcm_s32be pcm_f32le
    pcm_f32be pcm_f64le pcm_u8 pcm_s8 pcm_alaw pcm_mulaw pcm_bluray pcm_dvd adpcm_ms adpcm_ima_wav
    adpcm_ima_qt""".split()  # noqa: SIM905 - read as a list
)

_TEXT_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file may ask of this machine."""

    size: int = 2 << 40  # bytes
    pixels: int = 36_000_000  # of one picture
    streams: int = 16
    seconds: int = 24 * 3600
    tags: int = 2000  # FFmpeg searches all of them for each: 60,000 take half a minute to open
    lowest_rate: int = 4_000  # samples of sound a second: memory and time grow with what a sample lasts
    highest_rate: int = 768_000
    audio_packet: int = 16 << 20  # bytes: a packet is decoded at once


LIMITS = Limits()


def track_limits(track: VideoTrack) -> Limits:
    """The limits for a track that probe has accepted, perhaps with a higher limit of pixels than the default."""
    return replace(LIMITS, pixels=max(LIMITS.pixels, track.width * track.height))


@contextlib.contextmanager
def open_footage(path: Footage, limits: Limits = LIMITS, budget: Budget | None = None) -> Iterator[InputContainer]:
    """A container to read, after every check that needs no decoder; with a `budget`, what is read is counted.

    Raises:
        BadMedia: it is not footage, or cannot be opened safely.
        SourceMissing: it is missing, or may not be read.
    """
    with open_bytes(path) as file, translate_errors(path.name):
        _check_head(file, path.name, limits)
        handle, options = (MeteredReader(file, budget), _demuxer_options()) if budget else _handle(file)
        with av.open(handle, mode="r", options=options, metadata_errors="replace") as container:
            _check_counts(container, path.name, limits)
            yield container


def _check_counts(container: InputContainer, name: str, limits: Limits) -> None:
    if (count := len(container.streams)) > 4 * limits.streams:
        raise BadMedia(f"{name} has {count} streams, over the limit of {4 * limits.streams}")
    if (count := max(map(len, (container.metadata, *(s.metadata for s in container.streams))))) > limits.tags:
        raise BadMedia(f"{name} has {count} tags, over the limit of {limits.tags}")


@contextlib.contextmanager
def open_bytes(path: Footage) -> Iterator[BinaryIO]:
    """The bytes of a local file or a remote original."""
    if not isinstance(path, Path):
        with path.open() as file:
            yield file
        return
    with open_regular_file(path) as fd, os.fdopen(fd, "rb", closefd=False) as file:
        yield file


def _handle(file: BinaryIO) -> tuple[str | BinaryIO, dict[str, str]]:
    """What FFmpeg opens, and how: the very file that was checked, by its descriptor or through its reader."""
    if type(getattr(file, "raw", None)) is not io.FileIO:
        return file, _demuxer_options()
    os.lseek(file.fileno(), 0, os.SEEK_SET)  # what was read of its head may have been read ahead
    return "fd:", {**_demuxer_options(), "fd": str(file.fileno())}


@contextlib.contextmanager
def open_regular_file(path: Path) -> Iterator[int]:
    """A descriptor of a regular file: never a link, a pipe or a device, and never one that blocks."""
    if "\0" in str(path):
        raise BadMedia("the file name contains a NUL character")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as e:
        raise SourceMissing(f"{path.name}: {e.strerror}") from e
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise BadMedia(f"{path.name} is not a regular file", "Folders, pipes and devices cannot be read.")
        yield fd
    finally:
        os.close(fd)


def video_stream(container: InputContainer, limits: Limits = LIMITS) -> VideoStream | None:
    """The main video stream (never a cover picture), ready to be decoded within the limits."""
    best = container.streams.best("video")
    if not isinstance(best, VideoStream) or best.disposition & best.disposition.attached_pic:
        return None
    _check_codec(best, VIDEO_CODECS)
    check_pixels(best.codec_context.width, best.codec_context.height, limits)
    # options of the container do not reach the decoder
    best.codec_context.options = {"max_pixels": str(limits.pixels)}
    return best


def audio_stream(container: InputContainer, index: int) -> AudioStream:
    """The stream of an audio track, ready to be decoded."""
    stream = container.streams[index]
    if not isinstance(stream, AudioStream):
        raise BadMedia(f"stream {index} is no longer audio: the file has changed")
    _check_codec(stream, AUDIO_CODECS)
    return stream


def is_listed(stream: AudioStream | VideoStream) -> bool:
    """Whether its decoder is on the allow-list."""
    codec = stream.codec_context.codec.name if stream.codec_context else ""
    return codec in (AUDIO_CODECS if isinstance(stream, AudioStream) else VIDEO_CODECS)


def check_pixels(width: int, height: int, limits: Limits = LIMITS) -> None:
    """Raise BadMedia for pictures that would fill the memory."""
    if width * height > limits.pixels:
        limit = f"over the limit of {limits.pixels // 1_000_000} million pixels"
        raise BadMedia(f"its pictures are {width} x {height}, {limit}", "Make a smaller copy, or raise max_pixels.")


def check_rate(rate: int, limits: Limits = LIMITS) -> None:
    """Raise BadMedia for sound that would fill the memory when it is brought to the rate of players."""
    if not limits.lowest_rate <= rate <= limits.highest_rate:
        between = f"between {limits.lowest_rate} and {limits.highest_rate}"
        raise BadMedia(f"its audio has {rate} samples a second; only {between} can be read")


def short_text(text: str) -> str:
    """A text of a file as it may be kept: short, and only characters that can be shown."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 4 * _TEXT_LENGTH])
    return " ".join(shown.split())[:_TEXT_LENGTH]


def create_file(path: Path, options: dict[str, str]) -> OutputContainer:
    """A new MP4, without writer and date, so that bytes are reproducible."""
    return av.open(f"file:{path.absolute()}", mode="w", format="mp4", options={"fflags": "+bitexact", **options})


def create_segments(playlist: Path, pattern: Path) -> OutputContainer:
    """A new HLS playlist and its transport stream, which is cut at every key frame; `pattern` names the files."""
    options = {"hls_time": "0", "hls_list_size": "0", "hls_playlist_type": "vod", "hls_segment_type": "mpegts"}
    options |= {"hls_flags": "independent_segments", "hls_segment_filename": str(pattern.absolute())}
    flags = {"fflags": "+bitexact"}
    return av.open(f"file:{playlist.absolute()}", mode="w", format="hls", options={**options, **flags})


def create_matroska(buffer: BinaryIO) -> OutputContainer:
    """A Matroska in memory: FFmpeg sets some tags of a stream only when it reads this format."""
    return av.open(buffer, mode="w", format="matroska", options={"fflags": "+bitexact"})


def read_matroska(buffer: BinaryIO) -> InputContainer:
    """A Matroska written by create_matroska."""
    return av.open(buffer, mode="r", format="matroska")


@contextlib.contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise errors of FFmpeg as ours."""
    try:
        yield
    except FFmpegError as e:
        if e.errno == 28:
            raise NoRoom("the disk is full") from e
        raise BadMedia(f"{name} cannot be read as footage: {_reason(e)}") from e
    except UnicodeError as e:
        raise BadMedia(f"{name} cannot be read as footage: its metadata is not text") from e


def _reason(e: FFmpegError) -> str:
    known = {
        "InvalidDataError": "its data is invalid",
        "ArgumentError": "its format is not on the allow-list",
        "EOFError": "it ends too early",
        "DecoderNotFoundError": "there is no decoder for it",
    }
    return known.get(type(e).__name__, (e.strerror or type(e).__name__).lower())


def _demuxer_options() -> dict[str, str]:
    return {
        "format_whitelist": FORMATS,
        "protocol_whitelist": "fd",
        "codec_whitelist": ",".join(sorted(VIDEO_CODECS | AUDIO_CODECS)),
        "max_streams": "200",
    }


def _check_head(file: BinaryIO, name: str, limits: Limits) -> None:
    size = file.seek(0, os.SEEK_END)
    if size > limits.size:
        raise BadMedia(f"{name} has {size} bytes, over the limit of {limits.size}")
    file.seek(0)
    reason = why_not_footage(file.read(4096))
    file.seek(0)
    if reason:
        raise BadMedia(f"{name} {reason}")


def _check_codec(stream: VideoStream | AudioStream, allowed: frozenset[str]) -> None:
    name = stream.codec_context.codec.name
    if name not in allowed:
        hint = "Convert it to H.264 with another program, then run it again."
        raise BadMedia(f"its {stream.type} codec {name} is not on the allow-list", hint)
