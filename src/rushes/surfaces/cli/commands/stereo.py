"""3D: preview, make, and how long conversions took."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rushes.domain.errors import Refused
from rushes.files import local_path
from rushes.library import ConversionReport, Library, RunReport
from rushes.library.videos.stereo import StereoOptions, check_output, preview, write_film
from rushes.surfaces.cli import options
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.commands.run import run_shown
from rushes.surfaces.cli.screen import DONE, NOW, Column, relative_path
from rushes.surfaces.cli.session import Session
from rushes.surfaces.words import size

_RATES = ("cloud", "backend", "instance type", "avg_duration_sec", "eta_seconds_per_mb", "date")


def depth_options(format: str) -> options.Decorator:
    """The options for 3D."""
    behind = "How far the background lies behind the screen, -2 to 1.5 % of the width (default: auto)."
    return options.together(
        click.option("--format", default=format, show_default=True, metavar="NAME", help=_FORMATS),
        options.text_option("--strength", "PERCENT", "Depth, 0 to 3 % of the width (default: auto).", "auto"),
        options.text_option("--convergence", "PERCENT", behind, "auto"),
        options.text_option("--depth-model", "DIR", "Folder of your own depth model in ONNX format."),
        options.text_option("--depth-output", "KIND", "What your model returns: inverse (auto) or depth.", "auto"),
    )


_OUT_HELP = "Output file (default: next to the video, with a name that 3D players recognise)."
_FORMATS = "half-sbs, full-sbs, half-tb, full-tb, anaglyph (-colour, -half-colour, -dubois, -grey)."


@command("preview", "rushes stereo preview holiday.mp4", "rushes stereo preview holiday.mp4 --strength 2.5")
@click.argument("path", type=click.Path())
@depth_options("anaglyph")
def preview_frames(session: Session, /, path: str, depth_model: str, depth_output: str, **words: Any) -> None:
    """Preview eight frames in 3D and suggest a strength.

    Takes seconds, whatever the length of the video.
    """
    library = _opened(session, depth_model)
    made = preview(library.home, path, StereoOptions(output=depth_output, **words), signals=True)
    session.document(made)
    session.line(relative_path(made.path))
    session.remark((f"strength {made.strength:g}, convergence {made.convergence:g} (percent of the width)", DONE))
    chosen = f"--strength {made.strength:g} (without it, each shot gets its own)"
    session.remark((f"next: rushes stereo make {path} {chosen}", NOW))


@command(
    "make",
    "rushes stereo make holiday.mp4",
    "rushes stereo make ~/Films --format full-sbs",
    "rushes stereo make holiday.mp4 --format anaglyph --out holiday-3d.mp4",
)
@options.paths_argument
@depth_options("half-sbs")
@click.option(
    "--height", type=click.IntRange(90, 2160), default=1080, metavar="LINES", help="Maximum height of one view."
)
@options.chunk_option
@options.slots_option
@click.option("--out", type=click.Path(dir_okay=False), help=_OUT_HELP)
def make(
    session: Session,
    /,
    paths: Sequence[str],
    depth_model: str,
    depth_output: str,
    chunk: str,
    slots: int | None,
    out: str | None,
    **words: Any,
) -> int:
    """Make a 3D version of a video.

    Sound, chapters and subtitles are kept. Ctrl-C loses nothing: the same command continues where it stopped.
    """
    library = _opened(session, depth_model)
    if out:
        check_output(library.home, local_path(out))
    wanted = StereoOptions(output=depth_output, **words).wanted(chunk)
    ran, _ = run_shown(session, library, paths, wanted, slots)
    if out and len(ran.jobs) > 1:
        hint = "Leave --out away: each result is written next to its video."
        raise Refused("--out names one file, but there are several videos", hint)
    for job in ran.jobs if not ran.exit_code else ():
        film = write_film(library.home, job, local_path(out) if out else None)
        session.message("film", **{name: getattr(film, name) for name in film.__slots__})
        session.line(relative_path(film.path))
        session.remark((f"{film.frames} frames, {size(film.size)}{'' if film.made else ', already existed'}", DONE))
    _report_unfinished(session, ran)
    return ran.exit_code


def _report_unfinished(session: Session, ran: RunReport) -> None:
    for refused in ran.refused:
        session.remark((f"{refused.path}: {refused.error}", NOW))
    if ran.exit_code and ran.jobs:
        session.remark((f"not finished; see: rushes jobs why {ran.jobs[0].id}", NOW))


def _opened(session: Session, depth_model: str) -> Library:
    model = str(Path(depth_model).absolute()) if depth_model else None
    return options.open_library(session, create=True, over={"--depth-model": ("depth_model", model)})


stereo = CliGroup("stereo", "Make a 3D version of a video, or preview it in seconds.", [preview_frames, make])


@command("rates", "rushes rates", "rushes rates --markdown >> history.md", "rushes rates --json | jq .metrics")
@click.option("--markdown", is_flag=True, help="Print the history as a Markdown table.")
def rates(session: Session, markdown: bool) -> None:
    """Show how long 3D conversion took on this kind of machine, day by day.

    The times of a segment include all its work. Use eta_seconds_per_mb for estimates by file size (ETA_SECONDS_PER_MB).
    --json adds the metrics SegmentConversionDurationSeconds and ConversionSecondsPerMb by the size of segments.
    """
    found = options.open_library(session).estimates.conversions()
    session.document(found)
    rows = [[str(value) for value in asdict(day).values()] for day in found.history]
    if markdown:
        for row in [list(_RATES), ["---"] * len(_RATES), *rows]:
            session.line(f"| {' | '.join(row)} |")
    else:
        session.table([Column(name, right=name.endswith(("sec", "mb"))) for name in _RATES], rows)
    session.remark((_compared(found), DONE))


def _compared(found: ConversionReport) -> str:
    if not found.history:
        return "no 3D videos yet. Start with: rushes stereo make PATH"
    if found.change is None:
        return "one day so far: nothing to compare it with"
    percent, word = round(100 * abs(found.change - 1)), "more" if found.change > 1 else "less"
    return f"the latest day took {percent} % {word} per MB than the median of earlier ones"
