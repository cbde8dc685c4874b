"""Two runs of a film: compare, and choose which one counts."""

import click

from rushes.annotations import select
from rushes.domain.span import clock
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import many


@verb(
    "compare", "rushes compare holiday.mp4 job_7f3k job_9x2m", "rushes compare vid_7f3k job_7f3k job_9x2m --kind text"
)
@click.argument("video")
@click.argument("left")
@click.argument("right")
@click.option("--kind", default="speech", show_default=True, metavar="KIND", help="speech, text, object, place, ...")
@click.option("--all", "everything", is_flag=True, help="Also where they say the same.")
@click.option("--choose", type=click.Choice(["left", "right", "newest"]), help="Which one counts from now on.")
@click.pass_obj
def compare(
    session: Session, video: str, left: str, right: str, kind: str, everything: bool, choose: str | None
) -> None:
    """Show what two runs of a video say, side by side."""
    library = opened(session)
    found = library.compare(video, left, right, kind)
    if choose:
        select(library.home, library.video(video).id, kind, {"left": found.left, "right": found.right}.get(choose, ""))
    if session.json:
        rows = [{"start_us": r.start_us, "end_us": r.end_us, "left": r.left, "right": r.right} for r in found.rows]
        session.document({"kind": kind, "left": found.left, "right": found.right, "alike": found.alike, "rows": rows})
        return
    for row in found.rows:
        if everything or not row.same:
            session.out.line((clock(row.start_us), DONE))
            session.out.line(("  < ", NOW), row.left)
            session.out.line(("  > ", NOW), row.right)
    apart = sum(not row.same for row in found.rows)
    session.remark((f"{many(apart, 'difference')} in {many(len(found.rows), 'place')}, {found.alike:.1%} alike", DONE))


COMMANDS = {"compare": compare}
