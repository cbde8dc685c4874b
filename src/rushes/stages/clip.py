"""Clip: a span cut out on request, exact to the frame and to the sample."""

import re
from fractions import Fraction
from pathlib import Path

from rushes.domain.errors import NeverWorks
from rushes.domain.keys import short
from rushes.domain.observation import Observation
from rushes.domain.stage import Scope, StageSpec
from rushes.index.changes import Correction
from rushes.index.corrections import corrected
from rushes.media.clips.captions import add_track, burn_in, crop_cues
from rushes.media.clips.clip import ClipFacts, ProxyFile, ProxyFiles, clip_from_proxy, cut_clip
from rushes.media.clips.encoding import CRF
from rushes.media.developing.hls import SegmentIndex
from rushes.media.subtitles import cues
from rushes.stages.port import Work

_SOURCES, _SUBTITLES = ("original", "proxy"), ("", "track", "burnt")


class Clip:
    """Cuts what lies between two moments of film time, with some room on both sides."""

    spec = StageSpec(
        "clip",
        5,
        Scope.VIDEO,
        ("clip",),
        needs=("probe",),
        lane="now",
        options={
            "start_us": 0,
            "end_us": 0,
            "padding_ms": 2000,
            "clip_id": "",
            "source": _SOURCES[0],
            "subtitles": _SUBTITLES[0],
            "corrections": [],
        },
        reads_source=True,
        expiring=("clip",),
    )

    def run(self, work: Work) -> None:
        """Save clip.mp4 under the name that the asker knows."""
        start, end = int(work.options["start_us"]), int(work.options["end_us"])
        padding = int(work.options["padding_ms"]) * 1000
        if end <= start:
            raise NeverWorks("the clip ends before it starts", "Give a start before the end.")
        if work.options["source"] not in _SOURCES or work.options["subtitles"] not in _SUBTITLES:
            raise NeverWorks("a clip comes from the original or the proxy, with subtitles as track, burnt, or without")
        out = work.temporary(".mp4")
        zero = work.facts.start
        span = (zero + Fraction(start - padding, 1_000_000), zero + Fraction(end + padding, 1_000_000))
        made = _cut(work, span, out)
        out = _captioned(work, made, out) if work.options["subtitles"] else out
        name = str(work.options["clip_id"]) or "clip_" + short([work.video, start, end, padding])
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name):
            raise NeverWorks("the id of a clip may hold letters, digits, - and _ only")
        work.save("clip", "clip.mp4", out, "video/mp4", f"videos/clips/{work.video}/{name}.mp4")
        first, last = (int((moment - zero) * 1_000_000) for moment in (made.start, made.end))
        work.note("clip", start_us=first, end_us=last, frames=made.frames, copied=made.copied)
        if made.hidden:
            work.note("clip", hidden_us=[int((moment - zero) * 1_000_000) for moment in made.hidden])
            work.log(f"{len(made.hidden)} frames cannot be decoded and are concealed as well as possible")


def _cut(work: Work, part: tuple[Fraction, Fraction], out: Path) -> ClipFacts:
    if work.options["source"] == "original":
        return cut_clip(work.footage(), work.facts, *part, out, work.progress)
    proxy = ProxyFiles(_pieces(work, "develop", "proxy", "piece.mp4"), _pieces(work, "audio", "sound", "sound.mp4"))
    return clip_from_proxy(proxy, work.facts, part, work.scratch, out, work.progress)


def _captioned(work: Work, made: ClipFacts, film: Path) -> Path:
    """The clip with what is said in it, as track or in the pictures; as it is where nobody speaks."""
    doc = work.input("transcript", "transcript").json("transcript.json")
    begin, length = (int(t * 1000) for t in (made.start - work.facts.start, made.end - made.start))
    said = [Correction(id, work.video, "speech", *rest) for id, *rest in work.options["corrections"]]
    lines = corrected([Observation.from_json(line) for line in doc["lines"]], said)
    found = crop_cues(cues(lines), begin, length)
    if not found:
        return film
    out = work.temporary(".mp4")
    if work.options["subtitles"] == "burnt" and made.frames:
        burn_in(film, found, CRF, work.scratch, out)
    else:
        add_track(film, found, str(doc["language"]), work.scratch, out)
    return out


def _pieces(work: Work, stage: str, output: str, name: str) -> list[ProxyFile]:
    parts = [part for part in work.inputs(stage, output) if part.manifest.artifacts]
    return [(part.file(name), SegmentIndex.from_json(part.manifest.facts)) for part in parts]
