"""Inference about a whole video: every Nth frame, or its sound, given to an engine.

Nothing is kept: it decodes for itself, and answers as one document.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rushes.domain.keys import JSON
from rushes.domain.span import Span
from rushes.domain.video import Footage, VideoFacts, VideoTrack
from rushes.engines.models.languages import whisper_code
from rushes.engines.models.speech import parse_speech_models
from rushes.engines.models.vision import SAME_PERSON, input_side
from rushes.engines.port import Engine, Picture, Pictures
from rushes.media.developing.audio import extract_audio
from rushes.media.developing.cut_metrics import PIXELS, CutMetricsRecorder, join_metrics
from rushes.media.developing.shots import boundaries
from rushes.media.open import Limits
from rushes.media.reading.frames import decode
from rushes.media.reading.probe import probe
from rushes.media.reading.scaling import RgbScaler, display_size
from rushes.stages.speech.transcriber import Transcriber
from rushes.stages.speech.windows import cut_windows, open_pcm, speech_ranges

_HEIGHT = 1080  # larger pictures are scaled down before they are shown to a model
_BATCH = 4
_USUAL_THRESHOLD, _LEAST_STEP = 0.4, 8.0  # of a cut: the document's number, and the difference (of 255) that it means
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class FilmQuestion:
    """A film and what is asked of it; `asked` has the fields of the request."""

    film: Footage
    facts: VideoFacts
    asked: Mapping[str, JSON]
    engine: Engine
    scratch: Path

    @property
    def model(self) -> str:
        """The model to ask."""
        return str(self.asked["model"])

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The part that is asked for, in seconds of media time."""
        zero, end = self.facts.start, self.asked.get("end_ms")
        first = zero + Fraction(int(self.asked.get("start_ms") or 0), 1000)
        return first, zero + self.facts.duration if end is None else zero + Fraction(int(end), 1000)

    def ms(self, seconds: Fraction) -> int:
        """Milliseconds since the beginning of the film."""
        return round((seconds - self.facts.start) * 1000)

    def frames(self) -> Iterator[tuple[int, int, Picture]]:
        """Number, milliseconds and pixels of every Nth frame of the part."""
        track = self.facts.video
        if track is None:
            return
        first, last = self.bounds
        scaler, step = RgbScaler(track, _size(track)), int(self.asked["frame_interval"])
        for number, frame in enumerate(decode(self.film, self.facts, _until(track, last))):
            at = (frame.pts or 0) * track.base
            if number % step == 0 and at >= first:
                yield number, self.ms(at), scaler.scale(frame)

    def shown(self, ask: Callable[[Pictures], Sequence[Found]]) -> Iterator[tuple[dict[str, JSON], Found]]:
        """The place of each frame in time, and what the engine says to it."""
        batch: list[tuple[int, int, Picture]] = []
        for frame in self.frames():
            batch.append(frame)
            if len(batch) == _BATCH:
                yield from _answered(batch, ask)
                batch = []
        if batch:
            yield from _answered(batch, ask)

    @property
    def scale(self) -> float:
        """How much larger the film is than what was shown."""
        track = self.facts.video
        return track.upright[1] / _size(track)[1] if track else 1.0


def infer(what: str, film: Footage, asked: Mapping[str, JSON], engine: Engine, scratch: Path) -> JSON:
    """The answer, with the hash of the film.

    Raises:
        BadMedia: it is no film.
        RushesError: whatever the engine raises.
    """
    limits = Limits(pixels=int(asked["max_pixels"]), seconds=int(asked["max_hours"]) * 3600)
    facts = probe(film, limits=limits)
    question = FilmQuestion(film, facts, asked, engine, scratch)
    return {"input_hash": facts.sha256, **_QUESTIONS[what](question)}


def _objects(q: FilmQuestion) -> JSON:
    least = float(q.asked["confidence_threshold"])
    found = q.shown(lambda pictures: q.engine.detect_objects(q.model, pictures, least))
    rows = [(at, d) for at, some in found for d in some]
    return {"detections": [{**at, "label": d.label, **_seen(q, d.confidence, d.box)} for at, d in rows]}


def _faces(q: FilmQuestion) -> JSON:
    least, side = float(q.asked["confidence_threshold"]), input_side("faces", str(q.asked["model_profile"]))
    people: list[NDArray[np.float64]] = []
    rows = []
    for at, some in q.shown(lambda pictures: q.engine.detect_faces(q.model, pictures, least, side)):
        for face in some:
            person = str(_person(people, np.array(face.embedding)))
            rows.append({**at, "label": "face", **_seen(q, face.confidence, face.box), "cluster_id": person})
    return {"detections": rows}


def _person(people: list[NDArray[np.float64]], face: NDArray[np.float64]) -> int:
    """The first person whose first face is like this one; else a new one."""
    for number, first in enumerate(people):
        if float(first @ face) >= SAME_PERSON:
            return number
    people.append(face)
    return len(people) - 1


def _text(q: FilmQuestion) -> JSON:
    side, languages = input_side("text", str(q.asked["model_profile"])), [str(x) for x in q.asked["languages"]]
    rows = []
    for at, lines in q.shown(lambda pictures: q.engine.read_text(q.model, pictures, side, languages)):
        for line in lines:
            corners = [[x * q.scale, y * q.scale] for x, y in line.corners]
            xs, ys = zip(*corners, strict=True)
            box = {"x": min(xs), "y": min(ys), "width": max(xs) - min(xs), "height": max(ys) - min(ys)}
            polygon = [{"x": x, "y": y} for x, y in corners]
            rows.append({**at, "text": line.text, "confidence": line.confidence, "polygon": polygon, "bbox": box})
    return {"detections": rows}


def _places(q: FilmQuestion) -> JSON:
    most = int(q.asked["top_k"])
    found = q.shown(lambda pictures: q.engine.classify_place(q.model, pictures, most))
    return {
        "classifications": [
            {**at, "predictions": [{"label": label, "confidence": share} for label, share in guesses]}
            for at, guesses in found
        ]
    }


def _speech(q: FilmQuestion) -> JSON:
    if not q.facts.audio:
        return {"language": str(q.asked["language"] or ""), "segments": []}
    file = q.scratch / "sound.wav"
    made = extract_audio(q.film, q.facts, file, None, lambda _done: None, q.bounds)
    sound = open_pcm(file)
    voiced = [(0, sound.samples)]
    if q.asked["vad_filter"]:
        voiced = speech_ranges(sound.samples, sound.read, q.engine.detect_speech)
    language = whisper_code(str(q.asked["language"] or ""))
    models = parse_speech_models(q.model)
    transcriber = Transcriber(q.engine, models, sound, str(q.asked["model_profile"]), language)
    windows = cut_windows(voiced, sound.read, sound.samples)
    lines = [line.moved(made.start) for window in windows for line in transcriber.transcribe(window)]
    spoken = [line.language for line in lines]
    most = max(sorted(set(spoken)), key=spoken.count) if spoken else str(q.asked["language"] or "")
    return {"language": most, "segments": [_segment(q, line) for line in lines]}


def _segment(q: FilmQuestion, line: JSON) -> JSON:
    words = [
        {
            "word": word,
            "start_ms": q.ms(start * line.span.base),
            "end_ms": q.ms(end * line.span.base),
            "confidence": sure,
        }
        for word, start, end, sure in line.words
    ]
    start, end = q.ms(line.span.start * line.span.base), q.ms(line.span.end * line.span.base)
    return {"start_ms": start, "end_ms": end, "text": line.text, "confidence": line.confidence, "words": words}


def _scenes(q: FilmQuestion) -> JSON:
    track = q.facts.video
    if track is None:
        return {"scenes": []}
    first, last = q.bounds
    recorder = CutMetricsRecorder(track)
    for frame in decode(q.film, q.facts, _until(track, last)):
        if (frame.pts or 0) * track.base >= first:
            recorder.add(frame.pts or 0, frame)
    metrics = join_metrics([recorder.finish()])
    if not len(metrics.pts):
        return {"scenes": []}
    least = _LEAST_STEP * float(q.asked["threshold"]) / _USUAL_THRESHOLD
    strong = [n for n, how in boundaries(metrics).items() if how != "cut" or metrics.apart[n, 0] / PIXELS >= least]
    cuts = [int(metrics.pts[n]) * track.base for n in (0, *strong)]
    return {"scenes": _long_enough(q, cuts, min(last, track.end * track.base))}


def _long_enough(q: FilmQuestion, cuts: Sequence[Fraction], end: Fraction) -> list[JSON]:
    """Scenes of at least the length that is asked for; a shorter one belongs to the one before."""
    least, kept = Fraction(float(q.asked["min_scene_length"])), [cuts[0]]
    kept += [cut for cut in cuts[1:] if end - cut >= least]
    starts = kept[:1]
    for cut in kept[1:]:
        if cut - starts[-1] >= least:
            starts.append(cut)
    pairs = pairwise([*starts, end])
    return [{"scene_index": n, "start_ms": q.ms(a), "end_ms": q.ms(b)} for n, (a, b) in enumerate(pairs)]


def _answered(
    batch: Sequence[tuple[int, int, Picture]], ask: Callable[[Pictures], Sequence[Found]]
) -> Iterator[tuple[dict[str, JSON], Found]]:
    places: list[dict[str, JSON]] = [{"frame_index": number, "timestamp_ms": ms} for number, ms, _ in batch]
    yield from zip(places, ask([picture for _, _, picture in batch]), strict=True)


def _seen(q: FilmQuestion, confidence: float, edges: Sequence[float]) -> dict[str, JSON]:
    left, top, right, bottom = (edge * q.scale for edge in edges)
    box = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    return {"confidence": min(1.0, max(0.0, confidence)), "bbox": box}


def _size(track: VideoTrack) -> tuple[int, int]:
    return display_size(track, _HEIGHT)


def _until(track: VideoTrack, last: Fraction) -> Span:
    return Span(track.start, max(track.start, min(track.end, int(last / track.base))), track.base)


_QUESTIONS: Mapping[str, Callable[[FilmQuestion], JSON]] = {
    "objects": _objects,
    "faces": _faces,
    "transcribe": _speech,
    "ocr": _text,
    "places": _places,
    "scenes": _scenes,
}
