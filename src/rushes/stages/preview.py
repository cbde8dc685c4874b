"""Preview: eight frames of a film in 3D, and how strong its depth should be, before the long run."""

from collections.abc import Iterator
from statistics import median

import numpy as np
import simplejpeg
from av import VideoFrame

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.video import VideoTrack
from rushes.engines.models.vision import gives_inverse
from rushes.engines.port import Picture
from rushes.media.reading.frames import decode, frame_at, has_frames
from rushes.media.reading.scaling import RgbScaler, display_size
from rushes.media.stereo.depth import AUTO, DepthWriter, Grade, GradeOptions, TemporalDepth, grade_shot, read_map
from rushes.media.stereo.frame_packing import FramePacker, parse_format
from rushes.media.stereo.render import Renderer
from rushes.stages.port import Work

FRAMES = 8
_ACROSS = 4
_QUALITY = 90


class Preview:
    """Looks at moments from all over the film, each as if it were a shot of its own."""

    spec = StageSpec(
        "preview",
        1,
        Scope.VIDEO,
        ("preview",),
        needs=("probe",),
        options={"format": "anaglyph", "strength": AUTO, "convergence": AUTO, "height": 360, "output": AUTO},
        models=("depth",),
        reads_source=True,
    )

    def run(self, work: Work) -> None:
        """Save strip.jpg, with the strength that suits the film in its facts."""
        track = work.facts.video
        if track is None:
            raise BadMedia("this file has no picture", "3D needs a video with a picture.")
        wanted = GradeOptions.of(work.options)
        view = FramePacker(parse_format(str(work.options["format"])), display_size(track, int(work.options["height"])))
        shown, grades = [], []
        for n, (pts, frame) in enumerate(_moments(work, track)):
            picture, found = _rendered(work, track, view, wanted, pts, frame)
            shown.append(picture)
            grades.append(found)
            work.progress(n / FRAMES)
        sheet = simplejpeg.encode_jpeg(_sheet(shown), _QUALITY, "RGB", "420", fastdct=False)
        name = f"videos/3d/{work.video}/preview-{view.format}.jpg"
        work.save("preview", "strip.jpg", sheet, "image/jpeg", name)
        strength, convergence = (round(median(values), 1) for values in zip(*map(_said, grades), strict=True))
        work.note("preview", strength=strength, convergence=convergence, frames=len(shown), format=str(view.format))


def _said(grade_shot: Grade) -> tuple[float, float]:
    return grade_shot.strength, grade_shot.convergence


def _moments(work: Work, track: VideoTrack) -> Iterator[tuple[int, VideoFrame]]:
    """What is seen at evenly spread moments; at key frames where there are enough, for they are quick."""
    step = (track.end - track.start) / FRAMES
    even = [track.start + int((n + 0.5) * step) for n in range(FRAMES)]
    keys = [min(track.keys, key=lambda key: abs(key - moment)) for moment in even] if track.keys else []
    chosen = keys if len(set(keys)) == FRAMES else even
    for moment in chosen:
        frame = _seen(work, track, moment)
        if frame is not None:
            yield frame.pts or 0, frame


def _seen(work: Work, track: VideoTrack, moment: int) -> VideoFrame | None:
    """The first frame at or after a moment; the last one of the film, which may stay long, where none follows."""
    footage, rest = work.footage(), Span(moment, track.end, track.base)
    if not has_frames(footage, track, rest):
        return frame_at(footage, work.facts, moment)
    return next(decode(footage, work.facts, rest), None)


def _rendered(
    work: Work, track: VideoTrack, view: FramePacker, wanted: GradeOptions, pts: int, frame: VideoFrame
) -> tuple[Picture, Grade]:
    model, file = work.models["depth"], work.temporary(".bin")
    writer = DepthWriter(file, track.base, view.eye)
    inverse = gives_inverse(str(work.options["output"]))
    (near,) = work.engine.inverse_depth(model, [RgbScaler(track, view.eye).scale(frame)], inverse=inverse)
    writer.add(pts, near)
    index = writer.finish()
    found = grade_shot(pts, pts + 1, index.maps, wanted)
    with file.open("rb") as maps:
        depth = TemporalDepth(index.maps, lambda one: read_map(maps, one, index.size), track.base)
        made = Renderer(track, view, depth, [found]).render(pts, frame)
    rgb = made.to_ndarray(format="rgb24")
    return np.asarray(rgb, np.uint8), found


def _sheet(pictures: list[Picture]) -> Picture:
    """All in one picture, four in a row; a film of few frames leaves black ones."""
    blank = np.zeros_like(pictures[0])
    full = [*pictures, *[blank] * (FRAMES - len(pictures))]
    rows = [np.concatenate(full[n : n + _ACROSS], axis=1) for n in range(0, FRAMES, _ACROSS)]
    return np.ascontiguousarray(np.concatenate(rows))
