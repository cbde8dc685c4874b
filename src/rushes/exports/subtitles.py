"""Subtitles for other tools; they are made in media, for the transcript stage saves them too."""

from rushes.media.subtitles import Cue, cues, srt, text, vtt

__all__ = ["Cue", "cues", "srt", "text", "vtt"]
