"""Looking at what there is: ls, show, search."""

import contextlib
from collections.abc import Sequence

import click

from rushes.blobs.documents import address
from rushes.domain.errors import NotFound
from rushes.domain.job import FINAL, Job
from rushes.domain.span import clock
from rushes.exports.hits import hit_doc
from rushes.index.port import Hit, SearchResult, Video
from rushes.library import Library
from rushes.library.hits import KINDS
from rushes.surfaces.cli.command import Verb, verb
from rushes.surfaces.cli.library_option import opened
from rushes.surfaces.cli.screen import DONE, HEAD, Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import length, many, nearby, size
from rushes.surfaces.cli.views.made_counts import Made, made_of, shots_of
from rushes.surfaces.cli.views.no_hits import tell_nothing, what_there_is
from rushes.surfaces.cli.views.quotes import quoted, reference
from rushes.surfaces.cli.views.states import Hands, hands, parts
from rushes.surfaces.cli.views.video_line import container, recipe_of, shape


@verb("ls", "rushes ls", "rushes ls --limit 10", "rushes ls --json | jq -r '.videos[].path'")
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1, 1000), metavar="N", help="At most this many."
)
@click.option("--cursor", default="", metavar="MARK", help="Go on where an earlier list ended.")
@click.pass_obj
def ls(session: Session, limit: int, cursor: str) -> None:
    """List the videos, newest first."""
    library = opened(session)
    rows, following = library.videos(cursor, limit)
    if session.json:
        session.document({"videos": rows, "cursor": following})
        return
    columns = [Column("video"), Column("name", wide=True), Column("length", right=True), Column("picture"), Column("")]
    now = hands(library.home.ledger.workers())
    session.out.table(
        columns, [[v.id, v.name, length(v.duration_us), shape(v), parts(_words(library, v, now))] for v in rows]
    )
    if not rows:
        session.remark("no films yet; begin with: rushes run PATH")
    if following:
        session.remark((f"more: rushes ls --cursor {following}", DONE))


@verb("show", "rushes show holiday.mp4", "rushes show vid_7f3k --lines", "rushes show vid_7f3k --json")
@click.argument("video")
@click.option("--lines", is_flag=True, help="Also everything that is said, with its times.")
@click.pass_obj
def show(session: Session, video: str, lines: bool) -> None:
    """Show one video: what it is and what was made of it.

    VIDEO is its id (or the beginning of it), its file name or its path.
    """
    library = opened(session)
    found = library.video(video)
    said = library.lines(found.id)
    made = made_of(library, found, said)
    if session.json:
        shots = shots_of(library, found)
        session.document({"video": found, "made": made, "shots": shots} | ({"lines": said} if lines else {}))
        return
    session.out.line((found.name, HEAD), (f"  {found.id}", DONE))
    for name, value in _facts(library, found, made):
        if value:
            session.out.block(name, DONE, value)
    for line in said if lines else ():
        session.out.line((f"{clock(line.span.start_us):>12}  ", DONE), line.text)


class Search(Verb):
    """Takes `-word` as a part of the query, not as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hide the dash of `-word` while options are read."""
        hidden = [f"\0{a}" if len(a) > 2 and a[0] == "-" and a[1] != "-" else a for a in args]
        return super().parse_args(ctx, hidden)


@click.command(
    "search",
    cls=Search,
    examples=[
        "rushes search budget",
        """rushes search '"ask not" country -budget'""",
        "rushes search 'holi* OR vacation' --limit 5 --json",
        "rushes search 'say:budget near:5s text:Q3 person:anna -object:laptop'",
        "rushes search '~what it costs' --order time",
        "rushes search person:anna --export edl > anna.edl",
    ],
)
@click.argument("query", nargs=-1)
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, 1000), metavar="N", help="At most this many hits."
)
@click.option("--video", default="", metavar="VIDEO", help="Only in this video.")
@click.option("--cursor", default="", metavar="MARK", help="Go on where an earlier search ended.")
@click.option(
    "--order", type=click.Choice(["best", "time"]), default="best", show_default=True, help="Or as it was shot."
)
@click.option("--export", "kind", type=click.Choice(KINDS), help="Write all hits to the output, for other tools.")
@click.pass_obj
def search(
    session: Session, query: Sequence[str], limit: int, video: str, cursor: str, order: str, kind: str | None
) -> None:
    """Find what was said, written or seen, to the word.

    All words must be there at one time; "a phrase" in quotes, wor* for beginnings, -not, OR. Accents and case do not
    matter. say: text: object: person: place: entity: look at one kind; in: lang: kind: date: narrow; near:5s, before
    and during stand between terms; ~about this finds what means alike. A film is searchable while it is worked on.
    """
    library = opened(session)
    words = " ".join(word.removeprefix("\0") for word in query)
    if not words.strip():
        _what_there_is(session, library)
        return
    only = library.video(video).id if video else ""
    if kind:
        session.out.raw(library.export_hits(words, kind, only, order))
        return
    found = library.search(words, limit, cursor, only, order)
    if session.json:
        session.document(found_doc(words, found))
    else:
        _tell(session, library, words, only, found)


def found_doc(query: str, found: SearchResult) -> dict[str, object]:
    """A search for programs."""
    return {
        "query": query,
        "total": found.total,
        "videos": found.videos,
        "note": found.note,
        "took_ms": round(found.took_ms, 1),
        "cursor": found.cursor,
        "facets": found.facets,
        "hits": [_hit_doc(hit) for hit in found.hits],
    }


def _hit_doc(hit: Hit) -> dict[str, object]:
    return {"ref": reference(hit), **hit_doc(hit)}


def _tell(session: Session, library: Library, words: str, video: str, found: SearchResult) -> None:
    screen = session.out
    groups: dict[str, list[Hit]] = {}
    for hit in found.hits:
        groups.setdefault(hit.video, []).append(hit)
    for hits in groups.values():
        screen.line((hits[0].name, HEAD), (f"  {many(len(hits), 'hit')}", DONE))
        for hit in hits:
            kind = "" if hit.kind == "speech" else f"  {hit.kind}"
            room = max(24, screen.width - 16 - len(kind)) if screen.terminal else 0
            screen.line(f"{clock(hit.start_us):>12}  ", *quoted(hit.pieces, room, utf8=screen.utf8), (kind, DONE))
    if found.note:
        session.remark((found.note, DONE))
    if not found.hits:
        tell_nothing(session, library, words, video)
        return
    count = f"{len(found.hits)} of {many(found.total, 'hit')}, {many(found.videos, 'video')}, {found.took_ms:.0f} ms"
    session.remark((count, DONE))
    if found.cursor:
        session.remark((f"more: --cursor {found.cursor}", DONE))
    session.remark((f"next: rushes clip {reference(found.hits[0])}", DONE))


def _what_there_is(session: Session, library: Library) -> None:
    there = library.summary()
    if session.json:
        session.document({"query": "", "summary": there, "hits": []})
        return
    session.out.line(what_there_is(library))
    for kind, labels in there.labels.items():
        told = "  ".join(f"{text} ({count})" for text, count in list(labels.items())[:8])
        session.out.block(kind, DONE, told)
    if there.videos:
        session.out.line(("""words, "a phrase", wor*, -not, OR: rushes search '"thank you" -please'""", DONE))


def _words(library: Library, video: Video, now: Hands) -> list[str]:
    """The state of each of its jobs; one that is over is known to the index."""
    if len(video.jobs) < 2 and video.state in FINAL:
        return [now.of(video.job, video.state)]
    return [now.word(job) for job in _jobs(library, video)]


def _jobs(library: Library, video: Video) -> list[Job]:
    """Its jobs; what was read from a sidecar was a job of another home."""
    found: list[Job] = []
    for job in video.jobs:
        with contextlib.suppress(NotFound):
            found.append(library.home.ledger.job(job))
    return found


def _facts(library: Library, video: Video, made: Made) -> list[tuple[str, str]]:
    now = hands(library.home.ledger.workers())
    return [
        ("file", video.path),
        ("film", f"{length(video.duration_us)}  {shape(video)}  {container(video)}  {size(video.size)}"),
        ("title", video.title),
        ("shot", video.shot_at),
        ("said", " ".join(video.languages)),
        ("made", made.counts),
        *(("job", f"{j.id}  {recipe_of(j)}  {now.word(j)}") for j in _jobs(library, video)),
        ("watch", nearby(made.proxy) if made.proxy else ""),
        ("poster", nearby(address(library.home.blobs, video.poster)) if video.poster else ""),
    ]


COMMANDS = {"ls": ls, "show": show, "search": search}
