"""3D: preview, make."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from rushes.domain.errors import Refused
from rushes.library import Library, RunReport
from rushes.library.stereo import Depths, check_out, finished, preview
from rushes.surfaces.cli.command import Group, verb
from rushes.surfaces.cli.commands.run import watched
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.request_options import paths_argument
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import nearby, size
from rushes.surfaces.cli.views.summary import Notes


def depths_options(format: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options that say how a film is shown in 3D."""
    options = [
        click.option("--format", default=format, show_default=True, metavar="NAME", help=_FORMATS),
        click.option("--strength", default="auto", metavar="PERCENT", help="Depth, 0 to 3 % of the width (else auto)."),
        click.option(
            "--convergence",
            default="auto",
            metavar="PERCENT",
            help="How far behind the screen the farthest lies, -2 to 1.5 % of the width (else auto).",
        ),
        click.option("--depth-model", default=None, metavar="DIR", help="A depth net of your own in ONNX form."),
        click.option(
            "--depth-output", default="auto", metavar="KIND", help="What your net gives: inverse (auto) or depth."
        ),
    ]

    def said(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return said


_FORMATS = "half-sbs, full-sbs, half-tb, full-tb, anaglyph (-colour, -half-colour, -dubois, -grey)."


@verb("preview", "rushes stereo preview holiday.mp4", "rushes stereo preview holiday.mp4 --strength 2.5")
@click.argument("path", type=click.Path())
@depths_options("anaglyph")
@click.pass_obj
def preview_(session: Session, /, path: str, depth_model: str | None, depth_output: str, **words: Any) -> None:
    """Show eight frames of a film in 3D and what strength suits it, in seconds."""
    library = _opened(session, depth_model)
    made = preview(library.home, path, Depths(output=depth_output, **words), signals=True)
    if session.json:
        session.document(made)
        return
    session.out.line(nearby(made.path))
    session.remark((f"strength {made.strength:g}, convergence {made.convergence:g} (per cent of the width)", DONE))
    session.remark((f"next: rushes stereo make {path} --strength {made.strength:g}, or without to suit each shot", NOW))


@verb(
    "make",
    "rushes stereo make holiday.mp4",
    "rushes stereo make ~/Films --format full-sbs",
    "rushes stereo make holiday.mp4 --format anaglyph --out holiday-3d.mp4",
)
@paths_argument
@depths_options("half-sbs")
@click.option("--height", type=click.IntRange(90, 2160), default=1080, metavar="LINES", help="Of one view, at most.")
@click.option("--chunk", default="", metavar="SECONDS", help="Length of a chunk, or 'large'.")
@click.option("--slots", type=click.IntRange(1), metavar="N", help="Work on this many chunks at the same time.")
@click.option("--out", type=click.Path(dir_okay=False), help="Where it goes; else beside the film, named for players.")
@click.pass_obj
def make(
    session: Session,
    /,
    paths: Sequence[str],
    depth_model: str | None,
    depth_output: str,
    chunk: str,
    slots: int | None,
    out: str | None,
    **words: Any,
) -> int:
    """Make a film for both eyes, beside the one for one.

    Sound, chapters and subtitles are kept. Ctrl-C loses nothing: the same command goes on where it stopped.
    """
    library = _opened(session, depth_model)
    if out:
        check_out(library.home, Path(out))
    ran = watched(session, library, paths, Depths(output=depth_output, **words).wanted(chunk), slots, Notes())
    if out and len(ran.jobs) > 1:
        raise Refused("--out names one file, and these are several films", "Leave it out: each goes beside its film.")
    for job in ran.jobs if not ran.exit_code else ():
        film = finished(library.home, job, Path(out) if out else None)
        if session.json:
            session.message("film", **{name: getattr(film, name) for name in film.__slots__})
            continue
        session.out.line(nearby(film.path))
        session.remark((f"{film.frames} frames, {size(film.size)}{'' if film.made else ', was there already'}", DONE))
    _complain(session, ran)
    return ran.exit_code


def _complain(session: Session, ran: RunReport) -> None:
    for refused in ran.refused:
        session.remark((f"{refused.path}: {refused.error}", NOW))
    if ran.exit_code and ran.jobs:
        session.remark((f"not finished; see: rushes jobs why {ran.jobs[0].id}", NOW))


def _opened(session: Session, depth_model: str | None) -> Library:
    model = str(Path(depth_model).absolute()) if depth_model else None
    return opened(session, create=True, over={"--depth-model": ("depth_model", model)})


COMMANDS = {"stereo": Group("stereo", "3D: look at it in seconds, make it.", [preview_, make])}
