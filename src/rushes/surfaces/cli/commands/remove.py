"""rm: videos leave the library; originals stay where they are."""

import sys
from collections.abc import Sequence

import click

from rushes.domain.errors import Refused
from rushes.jobs.maintenance.video_removal import RemovalReport
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.screen import DONE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import many


@verb("rm", "rushes rm holiday.mp4", "rushes rm vid_7kq2 --yes", "rushes rm talk.mp4 --uploaded")
@click.argument("videos", nargs=-1, required=True, metavar="VIDEO...")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--uploaded", is_flag=True, help="Delete the original too, if it was uploaded to this home.")
@click.pass_obj
def rm(session: Session, videos: Sequence[str], yes: bool, uploaded: bool) -> None:
    """Delete videos with all that was made of them.

    Originals in folders and buckets stay as they are. Killed in between, the same command does the rest, or rushes gc.
    """
    library = opened(session)
    if not yes:
        _ask(session, len(videos))
    gone = [library.remove(video, originals=uploaded) for video in videos]
    if session.json:
        session.rows("removed", gone)
        return
    for one in gone:
        session.out.line(one.video, (f"  deleted: {_what(one)}", DONE))
    session.remark(("next: rushes gc frees the space", DONE))


def _ask(session: Session, count: int) -> None:
    if session.json or not sys.stdin.isatty():
        raise Refused("nobody can be asked here", "Say --yes.")
    click.confirm(
        f"Delete {many(count, 'video')} with all that was made of {'it' if count == 1 else 'them'}?", abort=True
    )


def _what(one: RemovalReport) -> str:
    told = [many(len(one.jobs), "job"), many(one.results, "result")]
    return ", ".join(told + ([many(len(one.originals), "uploaded original")] if one.originals else []))


COMMANDS = {"rm": rm}
