"""Taking things out: clip, export."""

import click

from rushes.domain.errors import Refused
from rushes.domain.span import clock
from rushes.library.export import SPOKEN
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.moment import parse_moment, parse_reference
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import nearby, size

AIR = 2.0  # seconds round a hit, so that its words can be followed


@verb(
    "clip",
    "rushes clip holiday.mp4 --from 12:41 --to 12:45.5",
    "rushes clip vid_7f3k@12:41.000-12:45.000 --out quote.mp4",
)
@click.argument("video")
@click.option("--from", "start", metavar="TIME", help="Where it begins: 1:02:03.5, or seconds.")
@click.option("--to", "end", metavar="TIME", help="Where it ends; that frame is not in it.")
@click.option(
    "--padding", type=click.FloatRange(0, 60), metavar="SECONDS", help="Air on both sides (for a hit 2, else 0)."
)
@click.option("--out", type=click.Path(dir_okay=False), help="Write it here as well; else it stays in the home.")
@click.option("--proxy", is_flag=True, help="From the proxy: smaller, sooner, and the original need not be there.")
@click.option("--subtitles", type=click.Choice(["track", "burnt"]), help="Put what is said beside or into the picture.")
@click.pass_obj
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
    """Cut a span out, to the frame.

    VIDEO is an id, a file name, a path, or a hit as search names it (ID@FROM-TO). The same span again is the same clip.
    """
    library = opened(session)
    name, begin, finish, air = _wanted(video, start, end)
    air = air if padding is None else padding
    text = subtitles or ""
    made = library.clip(name, begin, finish, round(air * 1000), out or None, proxy=proxy, subtitles=text, signals=True)
    if session.json:
        session.document(made)
        return
    session.out.line(nearby(made.path))
    span = f"{clock(made.start_us)}-{clock(made.end_us)}" + (f" and {air:g} s round it" if air else "")
    session.remark((f"{span}, {size(made.size)}{'' if made.made else ', was there already'}", DONE))
    if made.shortened:
        session.remark((f"the film ends at {clock(made.end_us)}: nothing comes after", NOW))


@verb("export", "rushes export holiday.mp4 srt > holiday.srt", "rushes export vid_7f3k edl --out cuts.edl")
@click.argument("video")
@click.argument("kind")
@click.option("--out", type=click.Path(dir_okay=False), help="Write it to this file; - is stdout.")
@click.pass_obj
def export(session: Session, video: str, kind: str, out: str | None) -> None:
    """Write subtitles, text or shots of a video, for other tools.

    KIND: srt, vtt, txt, json, words, csv, jsonl, chapters, chapters.vtt, edl, otio. It goes to stdout unless a file is
    named.
    """
    library = opened(session)
    out = None if out == "-" else out
    data = library.export(video, kind, out)
    if kind in SPOKEN and not library.lines(video):
        session.remark(("nothing is said in it: there are no lines to write", NOW))
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
        return (*hit, AIR)
    if start is None or end is None:
        raise Refused(f"{'--from' if start is None else '--to'} is missing", "For example: --from 12:41 --to 12:45.5")
    return video, parse_moment(start), parse_moment(end), 0.0


COMMANDS = {"clip": clip, "export": export}
