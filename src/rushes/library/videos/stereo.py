"""3D: its options, a quick preview, and the finished film next to the original."""

import filecmp
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from rushes.blobs.documents import address
from rushes.domain.errors import NotFound, Refused, RushesError
from rushes.domain.job import Job
from rushes.domain.keys import JSON, short
from rushes.domain.result import Manifest
from rushes.domain.stereo_keys import final_key
from rushes.domain.task import TaskState
from rushes.exports.files_beside import check_output_path
from rushes.home import Home
from rushes.index.port import Video
from rushes.jobs.intake import JobRequest, add, missing_models, wake
from rushes.jobs.originals import manifest_of, read_artifact
from rushes.jobs.own_outputs import CLIP, copy_out, remember
from rushes.library.videos.files import PublishedFilm
from rushes.library.work.run import run, stopped
from rushes.media.stereo.frame_packing import PACKINGS, SHORT_NAMES, StereoFormat, ass, parse_format
from rushes.media.subtitles import cues
from rushes.plan.planner import JobSpec
from rushes.plan.recipes import RECIPES
from rushes.sources.folder import fingerprint


@dataclass(frozen=True, slots=True)
class StereoOptions:
    """How a film is to be shown in 3D; strength and convergence in per cent of its width, or auto."""

    format: str = "half-sbs"
    strength: str = "auto"
    convergence: str = "auto"
    height: int = 1080
    output: str = "auto"  # what a depth model of one's own gives: depth or inverse

    def wanted(self, chunk: str = "", again: int = 0, *, segments: bool = False) -> JobRequest:
        """The request for the whole film; with `segments`, the chunks of the original are published, too.

        Raises:
            Refused: there is no such format.
        """
        look = {"strength": self.strength, "convergence": self.convergence}
        stereo: dict[str, JSON] = {"format": self._format(), "height": self.height}
        options = {"depth": {"output": self.output}, "grade": look, "stereo": stereo}
        if segments:
            options["source_segments"] = {"mode": _short_name(self._format())}
        only = ("source_segments", *RECIPES["3d"]) if segments else ()
        return JobRequest("3d", only, chunk=chunk, again=again, options=options)

    def trial(self) -> JobRequest:
        """The request for a preview."""
        look = {"strength": self.strength, "convergence": self.convergence, "output": self.output}
        return JobRequest(only=("preview",), options={"preview": {"format": self._format(), **look}})

    def _format(self) -> str:
        try:
            return str(parse_format(self.format))
        except RushesError as e:
            raise Refused(str(e), e.advice) from e


def in_format(wanted: JobRequest, format: str) -> JobRequest:
    """The same in a 3D format, where it makes 3D; without a recipe it does.

    Raises:
        Refused: there is no such format.
    """
    recipe = wanted.recipe or "3d"
    if not format or "stereo" not in RECIPES.get(recipe, ()):
        return wanted
    return replace(wanted, recipe=recipe, options={**wanted.options, **StereoOptions(format).wanted().options})


@dataclass(frozen=True, slots=True)
class StereoPreview:
    """Eight frames of a film, and what suits it."""

    path: str
    strength: float
    convergence: float
    frames: int


@dataclass(frozen=True, slots=True)
class Film3D:
    """A finished film in 3D."""

    path: str
    size: int
    frames: int
    format: str
    subtitles: str = ""
    made: bool = True  # false: it lay there already


def mode_of(job: Job) -> str:
    """The 3D format that a job makes, by its short name where it has one; "" of a job that makes none."""
    spec = JobSpec.from_text(job.payload)
    if "stereo" not in spec.stages:
        return ""
    return _short_name(str(spec.options.get("stereo", {}).get("format", StereoOptions().format)))


def _short_name(format: str) -> str:
    return next((short for short, full in SHORT_NAMES.items() if full == format), format)


def film_of(home: Home, job: Job) -> PublishedFilm | None:
    """The film in 3D that a job has made; None until it is there."""
    mode, name = mode_of(job), final_key(job.id)
    part = home.blobs.read(name, 0, 0) if mode else None
    file = f"{Path(job.name).stem}.{PACKINGS[parse_format(mode)].name}.mp4" if mode else ""
    return PublishedFilm(mode, name, part.size, file) if part else None


def list_films(home: Home, video: Video) -> list[PublishedFilm]:
    """Every film in 3D that was made of a video, in the order of formats."""
    place = f"videos/3d/{video.id}/"
    there, films = set(home.blobs.keys(place)), []  # one question to a far store, not one for each format
    for format, look in PACKINGS.items():
        name = f"{place}{format}.mp4"
        if name in there and (part := home.blobs.read(name, 0, 0)):
            films.append(PublishedFilm(format, name, part.size, f"{Path(video.name).stem}.{look.name}.mp4"))
    return films


def list_previews(home: Home, video: Video) -> list[tuple[str, str]]:
    """The format and published name of every 3D preview of a video, in the order of formats."""
    place = f"videos/3d/{video.id}/preview-"
    there = set(home.blobs.keys(place))
    return [(format, name) for format in PACKINGS if (name := f"{place}{format}.jpg") in there]


def preview(home: Home, path: str, depths: StereoOptions, *, signals: bool = False) -> StereoPreview:
    """Eight frames of a film in 3D, in seconds.

    Raises:
        RushesError: it could not be made; says why.
    """
    wanted = depths.trial()
    if lacks := missing_models(home, wanted):
        home.models.pull(lacks)
    added = list(add(home, [path], wanted))
    for one in added:
        if one.error:
            raise one.error
        if one.job:
            wake(home, one.job)
    ran = run(home, added, 1, signals=signals)
    if ran.signal:
        raise stopped(ran.signal)
    if len(ran.jobs) != 1:
        raise Refused(f"{path} is not a single video", "A preview needs one file.")
    manifest = _result(home, ran.jobs[0], "preview", "preview")
    strip, facts = manifest.artifact("strip.jpg"), manifest.facts
    where = address(home.blobs, strip.publish) if strip.publish else ""
    return StereoPreview(where, facts["strength"], facts["convergence"], facts["frames"])


def check_output(home: Home, out: Path) -> None:
    """Say before the work that a film cannot go there; one that we wrote there may be replaced.

    Raises:
        Refused: says why.
    """
    if not (out.is_file() and home.records.get(CLIP, home.owner, short(fingerprint(out).path))):
        check_output_path(out, (".mp4",))


def write_film(home: Home, job: Job, out: Path | None = None) -> Film3D:
    """Lay the film beside its original under a name that players read, or where somebody wants it.

    Raises:
        NotFound: it is not made.
        Refused: something else lies there.
    """
    manifest = _result(home, job, "join", "film")
    if not manifest.artifacts:
        raise NotFound(f"{job.name} has no picture, so there is no 3D version")
    film, format = manifest.artifact("film.mp4"), str(manifest.facts["format"])
    frames = int(manifest.facts["frames"])
    source = JobSpec.from_text(job.payload).source
    if out is None and source.far:
        return Film3D(address(home.blobs, film.publish or ""), film.size, frames, format)
    original = home.originals / source.path
    target = out or original.with_name(f"{original.stem}.{PACKINGS[StereoFormat(format)].name}.mp4")
    blob = home.blobs.local(job.owner, film.sha256)
    made = _laid(home, blob, target)
    texts = _subtitles(home, job, manifest, StereoFormat(format), target.with_suffix(".ass"))
    return Film3D(str(target), film.size, frames, format, texts, made)


def _result(home: Home, job: Job, stage: str, output: str) -> Manifest:
    if manifest := manifest_of(home, job.id, stage, output):
        return manifest
    failure = next((t.failure for t in home.ledger.tasks(job.id, TaskState.DEAD, limit=1).rows if t.failure), None)
    if failure:
        raise RushesError(failure.message, failure.hint)
    raise NotFound(f"{job.name} is not finished yet", f"See: rushes jobs show {job.id}")


def _laid(home: Home, blob: Path, target: Path) -> bool:
    """Copy the film there, in one step; whether it was not there yet."""
    if target.exists() and filecmp.cmp(blob, target, shallow=False):
        remember(home, target)  # the process that wrote it may have died before
        return False
    check_output_path(target, (".mp4",))
    copy_out(home, blob, target)
    return True


def _subtitles(home: Home, job: Job, manifest: Manifest, format: StereoFormat, target: Path) -> str:
    """Lines for both eyes beside the film: those of the original, else what is said in it, if that is known."""
    if not PACKINGS[format].layout or target.exists():
        return str(target) if target.exists() else ""
    if any(artifact.name == "film.ass" for artifact in manifest.artifacts):
        text = read_artifact(home, manifest, "film.ass")
    else:
        text = _spoken(home, job, format)
    if text and os.access(target.parent, os.W_OK):
        target.write_bytes(text)
    return str(target) if text else ""


def _spoken(home: Home, job: Job, format: StereoFormat) -> bytes:
    home.follower.catch_up()
    lines = home.index.lines(job.owner, json.loads(job.facts)["video"])
    return ass(cues(lines), PACKINGS[format]).encode() if lines else b""
