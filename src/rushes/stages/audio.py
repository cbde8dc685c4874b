"""Audio: decodes the sound of a video once, and finds where someone speaks."""

import hashlib
from fractions import Fraction
from pathlib import Path

from rushes.domain.errors import BadMedia
from rushes.domain.stage import Scope, StageSpec
from rushes.engines.port import RATE
from rushes.media.developing.audio import AudioFacts, extract_audio
from rushes.stages.port import Work
from rushes.stages.speech.windows import Window, cut_windows, open_pcm, speech_ranges


class Audio:
    """Makes the pcm for the speech model, the sound for the player, and the speech windows."""

    spec = StageSpec(
        "audio",
        1,
        Scope.VIDEO,
        ("pcm", "sound", "windows"),
        needs=("probe",),
        options={"vad_filter": True},  # false: all sound is taken for speech
        limits={"vad_filter": ()},
        output_options={"pcm": (), "sound": (), "windows": ("vad_filter",)},
        infers=("windows",),  # where somebody speaks
        reads_source=True,
        intermediate=("pcm",),
    )

    def run(self, work: Work) -> None:
        """Save pcm.wav, sound.mp4 and windows.json; of a film without sound only empty windows."""
        pcm, sound = work.temporary(".wav"), work.temporary(".mp4")
        made = _extracted(work, pcm, sound if "sound" in work.wanted else None)
        for output in work.wanted:
            work.count(output, 0)
        if made and "pcm" in work.wanted:
            work.save("pcm", "pcm.wav", pcm, "audio/wav")
        if made and "sound" in work.wanted:
            _save_sound(work, made, sound)
        if "windows" in work.wanted:
            _save_windows(work, made, pcm)


def _extracted(work: Work, pcm: Path, sound: Path | None) -> AudioFacts | None:
    if not work.facts.audio:
        return None
    try:
        part = (work.span.start * work.span.base, work.span.end * work.span.base) if work.span else None
        made = extract_audio(work.footage(), work.facts, pcm, sound, lambda done: work.progress(done * 0.8), part)
    except BadMedia as e:
        if work.facts.video is None:
            raise
        work.log(f"the audio cannot be used, the video can: {e}")
        return None
    if made.damaged:
        work.log(f"{made.damaged} damaged audio packets were replaced by silence")
    return made


def _save_sound(work: Work, made: AudioFacts, file: Path) -> None:
    if made.sound is None:
        return
    work.save("sound", "sound.mp4", file, "audio/mp4")
    header = made.sound.init_segment(file)
    work.note("sound", **made.sound.to_json(), init_sha256=hashlib.sha256(header).hexdigest())


def _save_windows(work: Work, made: AudioFacts | None, pcm: Path) -> None:
    found = _windows(work, pcm) if made else []
    start = made.start if made else Fraction(0)
    doc = {
        "rate": RATE,
        "samples": made.samples if made else 0,
        "start": [start.numerator, start.denominator],  # media time of sample 0, exactly
        "offset": round(start * RATE),  # the same in ticks of 1/16000 s: sample n lies at offset + n
        "windows": [w.to_json() for w in found],
    }
    work.save_json("windows", "windows.json", doc)
    work.count("windows", len(found))


def _windows(work: Work, pcm: Path) -> list[Window]:
    sound = open_pcm(pcm)
    if work.span or not work.options["vad_filter"]:  # a trial: the speech model is to be timed, whoever speaks there
        return cut_windows([(0, sound.samples)], sound.read, sound.samples)
    voiced = speech_ranges(sound.samples, sound.read, work.engine.detect_speech)
    return cut_windows(voiced, sound.read, sound.samples)
