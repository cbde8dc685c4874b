"""Search: hits, and their export."""

from collections.abc import Sequence

import click

from rushes.domain.grouping import grouped
from rushes.domain.span import clock
from rushes.library import Library
from rushes.library.search import KINDS, SearchResult, hit_doc
from rushes.surfaces.cli.command import CliCommand, command
from rushes.surfaces.cli.options import cursor_of, number_option, open_library, text_option
from rushes.surfaces.cli.screen import DONE, HEAD
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.hits import describe_library, quote_parts, reference, report_no_hits
from rushes.surfaces.words import plural

_ORDER_HELP = "Best hits first, or in the order of recording."


class SearchCommand(CliCommand):
    """Takes `-word` as part of the query, not as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hide the dash of `-word` while options are read."""
        hidden = [f"\0{a}" if len(a) > 2 and a[0] == "-" and a[1] != "-" else a for a in args]
        return super().parse_args(ctx, hidden)


HITS = 20  # on a page


@command(
    "search",
    "rushes search budget",
    """rushes search '"ask not" country -budget'""",
    "rushes search '(holi* OR vacation) beach date:>2020' --limit 5 --json",
    "rushes search 'say:budget near:5s text:Q3 person:anna -object:laptop'",
    "rushes search '~what it costs' --order time",
    "rushes search person:anna --export edl > anna.edl",
    cls=SearchCommand,
)
@click.argument("query", nargs=-1)
@number_option("--limit", "Print at most N hits.", 1, 1000, HITS)
@text_option("--video", "VIDEO", "Only in this video.")
@number_option("--page", "Print page N.", 1, default=1)
@text_option("--cursor", "CURSOR", "Continue after an earlier search (for programs).")
@click.option("--order", type=click.Choice(["best", "time"]), default="best", show_default=True, help=_ORDER_HELP)
@click.option("--export", "kind", type=click.Choice(KINDS), help="Write all hits to stdout, for other tools.")
def search(
    session: Session, query: Sequence[str], limit: int, video: str, page: int, cursor: str, order: str, kind: str | None
) -> None:
    """Find what was said, written or seen.

    All words must occur at the same time. "a phrase" in quotes, wor* for word beginnings, -not, OR, (groups); accents
    and case do not matter. say: text: object: person: place: entity: name: search one kind; in: lang: kind: date:
    filter the videos; kind:shot finds shots; near:5s, before, during and with go between terms; ~words finds similar
    meanings. Videos are searchable while they are being processed.
    """
    library = open_library(session)
    words = " ".join(word.removeprefix("\0") for word in query)
    if not words.strip():
        _report_library(session, library)
        return
    only = library.videos.find(video).id if video else ""
    if kind:
        session.out.raw(library.export_hits(words, kind, only, order))
        return
    begin = cursor_of(page, cursor, lambda at: library.search(words, limit, at, only, order).cursor)
    found = library.search(words, limit, begin, only, order)
    if session.json:
        session.document(result_doc(words, found))
    else:
        _report(session, library, words, only, found, page + 1)


def result_doc(query: str, found: SearchResult) -> dict[str, object]:
    """A search for programs."""
    return {
        "query": query,
        "total": found.total,
        "videos": found.videos,
        "note": found.note,
        "took_ms": round(found.took_ms, 1),
        "cursor": found.cursor,
        "facets": found.facets,
        "hits": [{"ref": reference(hit), **hit_doc(hit)} for hit in found.hits],
    }


def _report(session: Session, library: Library, words: str, video: str, found: SearchResult, following: int) -> None:
    screen = session.out
    for hits in grouped(found.hits, lambda hit: hit.video).values():
        screen.line((hits[0].name, HEAD), (f"  {plural(len(hits), 'hit')}", DONE))
        for hit in hits:
            kind = "" if hit.kind == "speech" else f"  {hit.kind}"
            room = max(24, screen.width - 16 - len(kind)) if screen.terminal else 0
            screen.line(f"{clock(hit.start_us):>12}  ", *quote_parts(hit.pieces, room, utf8=screen.utf8), (kind, DONE))
    if found.note:
        session.remark((found.note, DONE))
    if not found.hits:
        report_no_hits(session, library, words, video)
        return
    total = f"{plural(found.total, 'hit')}, {plural(found.videos, 'video')}, {found.took_ms:.0f} ms"
    session.remark((f"{len(found.hits)} of {total}", DONE))
    if found.cursor:
        session.remark((f"more: --page {following}", DONE))
    session.remark((f"next: rushes clip {reference(found.hits[0])}", DONE))


def _report_library(session: Session, library: Library) -> None:
    known = library.summary()
    session.document({"query": "", "summary": known, "hits": []})
    session.line(describe_library(known))
    for kind, labels in known.labels.items():
        shown = "  ".join(f"{text} ({count})" for text, count in list(labels.items())[:8])
        session.block(kind, DONE, shown)
    if known.videos:
        session.line(("""words, "a phrase", wor*, -not, OR: rushes search '"thank you" -please'""", DONE))
