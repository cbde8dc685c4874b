"""Videos: ls, show, compare, select."""

import click

from rushes.domain.errors import Refused
from rushes.domain.job import FINAL
from rushes.domain.span import clock
from rushes.library import Library
from rushes.library.videos import Video
from rushes.library.videos.payloads import TYPES
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import LIMIT, cursor_of, more_remark, open_library, page_options
from rushes.surfaces.cli.screen import DONE, HEAD, NOW, Column, relative_path
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.rows import MadeCounts, count_made, recipe_of, shape, shots_of, video_parts
from rushes.surfaces.words import ActiveJobs, active_jobs, container_name, plural, size, timecode


@command("ls", "rushes ls", "rushes ls --limit 10", "rushes ls --json | jq -r '.videos[].path'")
@page_options
def ls(session: Session, limit: int, page: int, cursor: str) -> None:
    """List the videos, newest first."""
    library = open_library(session)
    begin = cursor_of(page, cursor, lambda at: library.videos.page(at, limit)[1])
    rows, following = library.videos.page(begin, limit)
    if session.json:
        session.document({"videos": rows, "cursor": following})
        return
    columns = [Column("video"), Column("name", wide=True), Column("length", right=True), Column("picture"), Column("")]
    now = active_jobs(library.jobs.workers())
    session.table(
        columns, [[v.id, v.name, timecode(v.duration_us), shape(v), video_parts(_words(library, v, now))] for v in rows]
    )
    if not rows:
        session.remark("no videos yet. Start with: rushes run PATH")
    if following:
        session.remark((more_remark("rushes ls", limit, LIMIT, page), DONE))


@command("show", "rushes show holiday.mp4", "rushes show vid_7f3k --lines", "rushes show vid_7f3k --json")
@click.argument("video")
@click.option("--lines", is_flag=True, help="Also print the transcript, with times.")
def show(session: Session, video: str, lines: bool) -> None:
    """Show one video and what was made from it.

    VIDEO is an id (or the start of one), a file name or a path.
    """
    library = open_library(session)
    found = library.videos.find(video)
    said = library.videos.lines(found.id)
    made = count_made(library, found, said)
    shots = shots_of(library, found)
    session.document({"video": found, "made": made, "shots": shots} | ({"lines": said} if lines else {}))
    session.line((found.name, HEAD), (f"  {found.id}", DONE))
    for name, value in _facts(library, found, made):
        if value:
            session.block(name, DONE, value)
    for line in said if lines else ():
        session.line((f"{clock(line.span.start_us):>12}  ", DONE), line.text)


def _words(library: Library, video: Video, now: ActiveJobs) -> list[str]:
    """The state of each of its jobs; one that is over is known to the index."""
    if len(video.jobs) < 2 and video.state in FINAL:
        return [now.word_of(video.job, video.state)]
    words = [now.word(job) for job in library.jobs.of_video(video, len(video.jobs))]
    return words or [now.word_of(video.job, video.state)]  # its jobs were forgotten, or the ledger was lost


def _facts(library: Library, video: Video, made: MadeCounts) -> list[tuple[str, str]]:
    address, now = library.videos.address, active_jobs(library.jobs.workers())
    kind = container_name(video.container, video.path)
    return [
        ("file", video.path),
        ("video", f"{timecode(video.duration_us)}  {shape(video)}  {kind}  {size(video.size)}"),
        ("title", video.title),
        ("shot", video.shot_at),
        ("spoken", " ".join(video.languages)),
        ("made", made.counts),
        *(("job", f"{j.id}  {recipe_of(j)}  {now.word(j)}") for j in library.jobs.of_video(video, len(video.jobs))),
        ("watch", relative_path(made.proxy) if made.proxy else ""),
        ("poster", relative_path(address(video.poster)) if video.poster else ""),
    ]


@command(
    "compare", "rushes compare holiday.mp4 job_7f3k job_9x2m", "rushes compare vid_7f3k job_7f3k job_9x2m --kind text"
)
@click.argument("video")
@click.argument("left")
@click.argument("right")
@click.option("--kind", default="speech", show_default=True, metavar="KIND", help="speech, text, object, place, ...")
@click.option("--all", "everything", is_flag=True, help="Also print rows that are the same.")
@click.option("--choose", type=click.Choice(["left", "right", "newest"]), help="Use this one from now on.")
def compare(
    session: Session, video: str, left: str, right: str, kind: str, everything: bool, choose: str | None
) -> None:
    """Show the results of two runs of a video side by side.

    LEFT and RIGHT are jobs of the VIDEO.
    """
    library = open_library(session)
    shown = library.videos.find(video)
    found = library.videos.compare(shown, left, right, kind)
    if choose:
        library.videos.select_run(shown, kind, {"left": found.left, "right": found.right}.get(choose, ""))
    rows = [{"start_us": r.start_us, "end_us": r.end_us, "left": r.left, "right": r.right} for r in found.rows]
    session.document({"kind": kind, "left": found.left, "right": found.right, "alike": found.alike, "rows": rows})
    for row in found.rows:
        if everything or not row.same:
            session.line((clock(row.start_us), DONE))
            session.line(("  < ", NOW), row.left)
            session.line(("  > ", NOW), row.right)
    apart = sum(not row.same for row in found.rows)
    differ = f"{plural(apart, 'difference')} in {plural(len(found.rows), 'row')}"
    session.remark((f"{differ}, {found.alike:.1%} identical", DONE))


@command(
    "select",
    "rushes select holiday.mp4 speech --run job_7f3k",
    "rushes select all object --profile high_quality",
    "rushes select holiday.mp4 speech --latest",
)
@click.argument("video")
@click.argument("kind", type=click.Choice(sorted(TYPES)))
@click.option("--run", default="", metavar="JOB", help="Use this run.")
@click.option("--profile", default="", metavar="PROFILE", help="Use the newest run of this profile.")
@click.option("--latest", is_flag=True, help="Use the newest run (the default).")
def select(session: Session, video: str, kind: str, run: str, profile: str, latest: bool) -> None:
    """Choose which run of a video is shown, searched and exported, for one kind of results.

    VIDEO may be "all": then it holds for every video for which nothing else was chosen.
    """
    if bool(run) + bool(profile) + latest > 1:
        raise Refused("--run, --profile and --latest exclude each other", "Use one of them.")
    library = open_library(session)
    shown = None if video == "all" else library.videos.find(video)
    job = library.jobs.find(run).id if run else ""
    record = library.videos.select_run(shown, kind, job, profile)
    session.document(dict(record.doc))
    chosen = f"run {job}" if job else f"the newest run of profile {profile}" if profile else "the newest run"
    session.remark((f"{kind} of {shown.name if shown else 'every video'}: {chosen}", DONE))
