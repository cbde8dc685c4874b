"""What the tests of seeing share: weights fetched once, drawn films, and the stages run chunk by chunk."""

import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation, load
from rushes.engines.images import decode_jpeg
from rushes.engines.local import LocalEngine
from rushes.engines.models.store import ModelStore
from rushes.engines.port import Engine, Picture
from rushes.model_settings import models_folder
from rushes.settings import load as settings
from rushes.stages.develop import Develop
from rushes.stages.faces import Faces
from rushes.stages.objects import Objects
from rushes.stages.places import Places
from rushes.stages.probe import Probe
from rushes.stages.read_text import ReadText
from rushes.stages.segments import Segments
from tests.unit.film_work import FilmWork, chunks

MODELS = {
    "text": "ppocr-v6-tiny",
    "objects": "efficientdet-lite0",
    "faces": "yunet-sface",
    "places": "efficientnet-lite0",
}
MEDIA = Path(__file__).parents[1] / "media"
SLIDE = (
    "Quarterly Results 2025",
    "Revenue grew 18% to $4.2 million",
    "Operating costs fell by 6%",
    "Three new offices opened in Berlin",
    "Outlook: stable through October",
)
SEEING = {s.spec.name: s for s in (ReadText(), Objects(), Faces(), Places())}
ROWS = {"read_text": "readings.jsonl", "objects": "objects.jsonl", "faces": "faces.jsonl", "places": "places.jsonl"}


@functools.cache
def eyes() -> LocalEngine:
    """The real engine, with the real weights."""
    store = ModelStore(models_folder(settings().settings))
    store.pull([*MODELS.values(), "minilm-l6"])
    return LocalEngine(store, threads=2)


@functools.cache
def photo(name: str) -> Picture:
    """A picture of the tests' media."""
    return decode_jpeg((MEDIA / name).read_bytes())


def film_of(path: Path, shots: Sequence[tuple[Picture, int]], rate: int = 10, rotation: int = 0) -> Path:
    """A film of still pictures, each shown for so many frames, with a key frame every second."""
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=rate)
        height, width = shots[0][0].shape[:2]
        video.width, video.height, video.pix_fmt, video.gop_size = width, height, "yuv420p", rate
        video.options = {"crf": "18", "x264-params": f"keyint={rate}:min-keyint={rate}:scenecut=0:threads=1"}
        if rotation:
            video.set_display_rotation(rotation)
        pts = 0
        for picture, frames in shots:
            for _ in range(frames):
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                frame.pts, frame.time_base = pts, Fraction(1, rate)
                out.mux(video.encode(frame))
                pts += 1
        out.mux(video.encode())
    return path


def seen(
    film: Path,
    scratch: Path,
    stages: Sequence[str],
    *,
    seconds: int = 60,
    engine: Engine | None = None,
    models: Mapping[str, str] = MODELS,
    options: Mapping[str, Mapping[str, JSON]] | None = None,
) -> dict[str, list[Observation]]:
    """What the stages see in a film that is cut into chunks of so many seconds; text also merged, as "segments"."""
    work = FilmWork(film, scratch, engine=engine or eyes(), models=models)
    work.run(Probe())
    for span in chunks(work.facts, seconds) if work.facts.video else [None]:
        work.made["develop.frames"] = []
        work.run(Develop(), span, wanted=["frames"])
        for name in stages:
            work.run(SEEING[name], span, options=(options or {}).get(name))
    rows = {name: _rows(work, f"{name}.{SEEING[name].spec.outputs[0]}", ROWS[name]) for name in stages}
    if "read_text" in stages:
        work.run(Segments())
        rows["segments"] = _rows(work, "segments.segments", "segments.jsonl")
    return rows


def _rows(work: FilmWork, output: str, name: str) -> list[Observation]:
    return [row for part in work.made[output] for row in load(part.bytes(name))]


def plain(colour: int = 0, size: tuple[int, int] = (640, 360)) -> Picture:
    """A picture of one colour."""
    return np.full((size[1], size[0], 3), colour, np.uint8)
