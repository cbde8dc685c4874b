"""People seen in videos: people ls, name, merge, split, hide, undo."""

import click

from rushes.domain.span import clock
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import DONE, Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.words import parse_timecode


@command("ls", "rushes people ls", "rushes people ls --hidden", "rushes people ls --json")
@click.option("--hidden", is_flag=True, help="Also list hidden people.")
def ls(session: Session, hidden: bool) -> None:
    """List the people in your videos, named ones first."""
    found = open_library(session).people.all(hidden=hidden)
    session.document({"people": found})
    columns = [Column("person"), Column("name", wide=True), Column("faces", right=True), Column("best seen at")]
    rows = [
        [p.id, p.name or ("(hidden)" if p.hidden else ""), str(p.faces), f"{p.video}@{clock(p.at_us)}"] for p in found
    ]
    session.table(columns, rows)
    if not found:
        session.remark("no people yet. Find faces with: rushes run PATH")
    elif not any(p.name for p in found):
        session.remark((f'next: rushes people name {found[0].id} "Anna"', DONE))


@command("name", 'rushes people name per_7f3k "Anna"', 'rushes people name Anna "Anna Karenina"')
@click.argument("person")
@click.argument("name")
def name(session: Session, person: str, name: str) -> None:
    """Name a person, in all present and future videos.

    PERSON is an id or a name, as printed by `rushes people ls`. Giving the name of another person merges the two.
    """
    open_library(session).people.name(person, name)
    _report(session, f"{name}: rushes search 'person:\"{name}\"'", person=person, name=name)


@command("merge", "rushes people merge per_7f3k Anna")
@click.argument("person")
@click.argument("into")
def merge(session: Session, person: str, into: str) -> None:
    """Merge PERSON into another person."""
    open_library(session).people.merge(person, into)
    _report(session, f"{person} was merged into {into}", person=person, into=into)


@command("split", "rushes people split Anna holiday.mp4@12:41", "rushes people split Anna vid_7f3k@12:41 --name Bert")
@click.argument("person")
@click.argument("place", metavar="VIDEO@TIME")
@click.option("--name", "called", default="", metavar="NAME", help="Name of the other person.")
def split(session: Session, person: str, place: str, called: str) -> None:
    """Separate the face at VIDEO@TIME from a person."""
    library = open_library(session)
    video, _, at = place.rpartition("@")
    new = library.people.split(person, library.videos.find(video).id, parse_timecode(at), called)
    _report(session, f"the face is now {new}", person=person, new=new)


@command("hide", "rushes people hide per_7f3k", "rushes people hide per_7f3k --back")
@click.argument("person")
@click.option("--back", is_flag=True, help="Show the person again.")
def hide(session: Session, person: str, back: bool) -> None:
    """Hide a person from lists and searches.

    For example a passer-by, or a face on a poster.
    """
    open_library(session).people.hide(person, hidden=not back)
    _report(session, f"{person} is {'shown again' if back else 'hidden'}", person=person, hidden=not back)


@command("undo", "rushes people undo")
def undo(session: Session) -> None:
    """Undo the last change.

    That is a name, a merge, a split or a hide; repeat it to undo earlier ones.
    """
    what = open_library(session).people.undo()
    _report(session, f"undone: {what}", undone=what)


def _report(session: Session, sentence: str, **doc: object) -> None:
    session.document(doc)
    session.line(sentence)


people = CliGroup(
    "people", "List, name, merge, split and hide the people seen in videos.", [ls, name, merge, split, hide, undo]
)
