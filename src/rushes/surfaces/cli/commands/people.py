"""Who is seen: people ls, name, merge, split, hide, undo."""

import click

from rushes.annotations.acts import undo as take_back
from rushes.annotations.people import hide_person, merge_people, name_person, split_person
from rushes.domain.span import clock
from rushes.surfaces.cli.command import Group, verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.moment import parse_moment
from rushes.surfaces.cli.screen import DONE, Column
from rushes.surfaces.cli.session import Session


@verb("ls", "rushes people ls", "rushes people ls --hidden", "rushes people ls --json")
@click.option("--hidden", is_flag=True, help="Also those who were hidden.")
@click.pass_obj
def ls(session: Session, hidden: bool) -> None:
    """List everybody whose face is known, named first."""
    found = opened(session).people(hidden=hidden)
    if session.json:
        session.document({"people": found})
        return
    columns = [Column("person"), Column("name", wide=True), Column("faces", right=True), Column("seen best at")]
    rows = [
        [p.id, p.name or ("(hidden)" if p.hidden else ""), str(p.faces), f"{p.video}@{clock(p.at_us)}"] for p in found
    ]
    session.out.table(columns, rows)
    if not found:
        session.remark("nobody yet; faces are found by: rushes run PATH --recipe everything")
    elif not any(p.name for p in found):
        session.remark((f'next: rushes people name {found[0].id} "Anna"', DONE))


@verb("name", 'rushes people name per_7f3k "Anna"', 'rushes people name Anna "Anna Karenina"')
@click.argument("person")
@click.argument("name")
@click.pass_obj
def name(session: Session, person: str, name: str) -> None:
    """Say what somebody is called, in every film there is and to come.

    PERSON is an id or a name, as `rushes people ls` shows them. The name of somebody else makes the two one.
    """
    name_person(opened(session).home, person, name)
    _tell(session, f"{name}: rushes search 'person:\"{name}\"'", person=person, name=name)


@verb("merge", "rushes people merge per_7f3k Anna")
@click.argument("person")
@click.argument("into")
@click.pass_obj
def merge(session: Session, person: str, into: str) -> None:
    """Say that two are one person."""
    merge_people(opened(session).home, person, into)
    _tell(session, f"{person} is {into} now", person=person, into=into)


@verb("split", "rushes people split Anna holiday.mp4@12:41", "rushes people split Anna vid_7f3k@12:41 --name Bert")
@click.argument("person")
@click.argument("place")
@click.option("--name", "called", default="", metavar="NAME", help="Who it is instead.")
@click.pass_obj
def split(session: Session, person: str, place: str, called: str) -> None:
    """Say that the face at VIDEO@TIME is somebody else's."""
    library = opened(session)
    video, _, at = place.rpartition("@")
    new = split_person(library.home, person, library.video(video).id, parse_moment(at), called)
    _tell(session, f"{new} is somebody else now", person=person, new=new)


@verb("hide", "rushes people hide per_7f3k", "rushes people hide per_7f3k --back")
@click.argument("person")
@click.option("--back", is_flag=True, help="Show them again.")
@click.pass_obj
def hide(session: Session, person: str, back: bool) -> None:
    """Leave somebody out of lists and searches: a passer-by, a poster, no face at all."""
    hide_person(opened(session).home, person, hidden=not back)
    _tell(session, f"{person} is {'shown again' if back else 'hidden'}", person=person, hidden=not back)


@verb("undo", "rushes people undo")
@click.pass_obj
def undo(session: Session) -> None:
    """Take back what was last said: a name, a merge, a split, a hiding; again, what was said before that."""
    what = take_back(opened(session).home)
    _tell(session, f"no longer: {what}", undone=what)


def _tell(session: Session, sentence: str, **doc: object) -> None:
    if session.json:
        session.document(doc)
    else:
        session.out.line(sentence)


COMMANDS = {
    "people": Group(
        "people", "Who is seen: list, name, merge, split, hide, undo.", [ls, name, merge, split, hide, undo]
    )
}
