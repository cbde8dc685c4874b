"""Subtitles in a clip, as a track or burnt into its pictures: by the ffmpeg of a wheel, since PyAV has no filter."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib.resources import as_file, files
from pathlib import Path

from imageio_ffmpeg import get_ffmpeg_exe

from rushes.domain.errors import NeverWorks
from rushes.media.encoders import x264_options
from rushes.media.subtitles import Cue, srt

FONT = "SourceSansPro-Semibold.ttf"
_STYLE = "FontName=Source Sans Pro Semibold,FontSize=18,Outline=1.2,Shadow=0.6,MarginV=18"
_LOG_OPTIONS = ("-v", "warning", "-nostdin", "-y")
_MISSING_GLYPH = re.compile(r"fallback with glyph 0x([0-9A-F]+)")
_FILM = ("-protocol_whitelist", "file", "-f", "mp4", "-i")  # holds for one input only
_CUES = ("-protocol_whitelist", "file", "-f", "srt", "-i", "cues.srt")
# Fonts of the machine would give other bytes on another one.
_FONTS_CONF = """<?xml version="1.0"?>
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="relative">fonts</cachedir></fontconfig>
"""
_BITEXACT = ("-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact", "-movflags", "+faststart")


def crop_cues(found: Iterable[Cue], start_ms: int, length_ms: int) -> list[Cue]:
    """Cues of a film as cues of a clip that begins and lasts so long."""
    moved = ((max(0, c.start - start_ms), min(length_ms, c.end - start_ms), c.lines) for c in found)
    return [Cue(start, end, lines) for start, end, lines in moved if start < end]


def add_track(film: Path, found: Iterable[Cue], language: str, scratch: Path, out: Path) -> None:
    """Copy a clip and put the cues beside it as a track of text."""
    (scratch / "cues.srt").write_text(srt(list(found)), "utf-8")
    said = ("-metadata:s:s:0", f"language={language}") if language else ()
    copied = ("-map", "0", "-map", "1", "-c", "copy", "-c:s", "mov_text", *said)
    _ffmpeg(scratch, *_FILM, _seen_from(scratch, film), *_CUES, *copied, *_BITEXACT, _seen_from(scratch, out))


def burn_in(film: Path, found: Iterable[Cue], crf: int, scratch: Path, out: Path) -> None:
    """Re-encode a clip with the cues in its pictures; every frame keeps its time.

    Raises:
        NeverWorks: the font has no letters for what is said.
    """
    (scratch / "cues.srt").write_text(srt(list(found)), "utf-8")
    (scratch / "fonts").mkdir(exist_ok=True)
    with as_file(files(__package__).joinpath("fonts", FONT)) as font:
        shutil.copyfile(font, scratch / "fonts" / FONT)
    (scratch / "fonts.conf").write_text(_FONTS_CONF, "utf-8")
    drawn = f"subtitles=filename=cues.srt:fontsdir=fonts:force_style='{_STYLE}'"
    options = [part for name, value in x264_options(crf).items() for part in (f"-{name}:v", value)]
    times = ("-fps_mode", "passthrough", "-enc_time_base:v", "demux")
    coded = ("-vf", drawn, "-c:v", "libx264", *options, "-c:a", "copy", *times)
    said = _ffmpeg(scratch, *_FILM, _seen_from(scratch, film), *coded, *_BITEXACT, _seen_from(scratch, out))
    if lacks := sorted({chr(int(number, 16)) for number in _MISSING_GLYPH.findall(said)}):
        hint = "Add them as a track: players have fonts for every script."
        raise NeverWorks(f"the bundled font has no glyphs for {' '.join(lacks[:20])}", hint)


def _seen_from(folder: Path, file: Path) -> str:
    """Its path from there: a slot may be a user that cannot enter the folders above its scratch."""
    return os.path.relpath(file, folder)


def _ffmpeg(folder: Path, *arguments: str) -> str:
    """Run it on files of ours only, in the scratch folder; what it warned of.

    Raises:
        NeverWorks: it fails.
    """
    command = [get_ffmpeg_exe(), *_LOG_OPTIONS, *arguments]
    told = os.environ | {"FONTCONFIG_PATH": ".", "FONTCONFIG_FILE": "fonts.conf"}
    done = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NeverWorks(f"the subtitles cannot be put into the clip: {done.stderr.strip()[-300:]}")
    return done.stderr
