"""The index: brought up to date, or filled from what lies beside films."""

from collections.abc import Sequence

import click

from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.screen import NOW
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import many
from rushes.surfaces.cli.views.no_hits import what_there_is


@verb("index", "rushes index", "rushes index --from-sidecars ~/films", "rushes index --write-sidecars holiday.mp4")
@click.option(
    "--from-sidecars", "places", multiple=True, metavar="PATH", help="Read .rushes.jsonl files below a folder."
)
@click.option("--write-sidecars", "videos", multiple=True, metavar="VIDEO", help="Write everything beside this film.")
@click.pass_obj
def index(session: Session, places: Sequence[str], videos: Sequence[str]) -> None:
    """Bring the search index up to date; from sidecars it works though the home was lost."""
    library = opened(session)
    read = library.read_sidecars(places) if places else []
    written = [file for video in videos for file in library.write_sidecars(video)]
    there = library.summary()
    if session.json:
        session.document({"read": read, "written": written, "summary": there})
        return
    for one in read:
        told = one.kept or f"{one.name}  {many(one.lines, 'line')}"
        session.out.line(str(one.path), f"  {told}")
    for file in written:
        session.out.line(str(file.path), *([(f"  not written: {file.kept}", NOW)] if file.kept else []))
    session.out.line(what_there_is(library))


COMMANDS = {"index": index}
