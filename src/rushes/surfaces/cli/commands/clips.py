"""Parts of a video: clip, export."""

import click

from rushes.domain.errors import Refused
from rushes.domain.span import clock
from rushes.library.videos.export import SPOKEN
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import DONE, NOW, relative_path
from rushes.surfaces.cli.session import Session
from rushes.surfaces.words import parse_reference, parse_timecode, size

PADDING = 2.0  # seconds around a hit, so that its words can be followed
_PADDING_HELP = "Padding before and after (default: 2 for a hit, else 0)."
_SUBTITLES_HELP = "Add subtitles as a track, or burn them into the picture."
_FILE = click.Path(dir_okay=False)


@command(
    "clip",
    "rushes clip holiday.mp4 --from 12:41 --to 12:45.5",
    "rushes clip vid_7f3k@12:41.000-12:45.000 --out quote.mp4",
)
@click.argument("video")
@click.option("--from", "start", metavar="TIME", help="Start: 1:02:03.5, or seconds.")
@click.option("--to", "end", metavar="TIME", help="End; the frame at this time is not included.")
@click.option("--padding", type=click.FloatRange(0, 60), metavar="SECONDS", help=_PADDING_HELP)
@click.option("--out", type=_FILE, help="Also write the clip to this file; it is always kept in the home.")
@click.option("--proxy", is_flag=True, help="Cut from the proxy: smaller, faster, works without the original.")
@click.option("--subtitles", type=click.Choice(["track", "burnt"]), help=_SUBTITLES_HELP)
def clip(
    session: Session,
    video: str,
    start: str | None,
    end: str | None,
    padding: float | None,
    out: str,
    proxy: bool,
    subtitles: str | None,
) -> None:
    """Cut a clip out of a video, exact to the frame.

    VIDEO is an id, a file name, a path, or a hit as printed by search (ID@FROM-TO). The same range is the same clip.
    """
    library = open_library(session)
    name, begin, finish, extra = _wanted(video, start, end)
    extra = extra if padding is None else padding
    text, ms = subtitles or "", round(extra * 1000)
    made = library.clip(name, begin, finish, ms, out or None, proxy=proxy, subtitles=text, signals=True)
    session.document(made)
    session.line(relative_path(made.path))
    span = f"{clock(made.start_us)}-{clock(made.end_us)}" + (f" with {extra:g} s on both sides" if extra else "")
    session.remark((f"{span}, {size(made.size)}{'' if made.made else ', already existed'}", DONE))
    if made.shortened:
        session.remark((f"shortened: the video ends at {clock(made.end_us)}", NOW))


@command("export", "rushes export holiday.mp4 srt > holiday.srt", "rushes export vid_7f3k edl --out cuts.edl")
@click.argument("video")
@click.argument("kind")
@click.option("--out", type=_FILE, help="Write to this file; - is stdout.")
@click.option(
    "--language", default="", metavar="CODE", help="Only what is said in this language (srt, vtt, txt, json)."
)
def export(session: Session, video: str, kind: str, out: str | None, language: str) -> None:
    """Export subtitles, text or shots of a video, for other tools.

    KIND: srt, vtt, txt, json, words, csv, jsonl, parquet, chapters, chapters.vtt, edl, otio. Writes to stdout unless
    --out names a file.
    """
    library = open_library(session)
    out = None if out == "-" else out
    found = library.videos.find(video)
    data = library.videos.export(found, kind, out, language)
    if kind in SPOKEN and not library.videos.lines(found.id):
        session.remark(("no speech was found in this video: the export is empty", NOW))
    if out:
        session.remark((f"{out}, {size(len(data))}", DONE))
    elif session.json:
        session.document({"video": video, "kind": kind, "text": data})
    else:
        session.out.raw(data)


def _wanted(video: str, start: str | None, end: str | None) -> tuple[str, int, int, float]:
    if start is None and end is None:
        hit = parse_reference(video)
        if hit is None:
            raise Refused("a clip needs --from and --to", "For example: --from 12:41 --to 12:45.5")
        return (*hit, PADDING)
    if start is None or end is None:
        raise Refused(f"{'--from' if start is None else '--to'} is missing", "For example: --from 12:41 --to 12:45.5")
    return video, parse_timecode(start), parse_timecode(end), 0.0
