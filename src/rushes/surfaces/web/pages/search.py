"""Search: one box, facets, and hits grouped by video, each with its frame, its words and its time."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from rushes.domain.job import JobState
from rushes.library import Library
from rushes.library.search import FIELDS, Clause, Filter, Hit, SearchResult, Summary, Term, parse, words
from rushes.library.spelling import Vocabulary, completions, similar_query
from rushes.surfaces.http.deps import LibraryDep
from rushes.surfaces.http.schemas import Cursor, HitShape, seal, unseal
from rushes.surfaces.web.pages.library import index_counts, known_words
from rushes.surfaces.web.view import render, with_query
from rushes.surfaces.words import kind_name, language_name

router = APIRouter(include_in_schema=False)
PAGE = 20
COMPLETIONS = 12
NOTES = {"say": "speech", "text": "text on screen", "object": "an object in the picture",
         "person": "a person in the picture", "place": "where it was filmed", "entity": "a name, number or link",
         "picture": "~what is in the picture, if a model for it is configured", "name": "the name of a video",
         "kind": "shot: shots that match the rest of the query; speech, text, object, ...",
         "in": "only a video or folder, by name", "lang": "a language, such as en",
         "date": "2026, 2026-11, 2025..2026, >2020, today, last-week, may-2026",
         "near": "5s: at most 5 seconds apart", "before": "60s: ends at most 60 seconds before the other begins",
         "during": "between two fields: lies inside the other",
         "with": "between two fields: the first, while the other is present"}  # fmt: skip
Asked = Annotated[str, Query(max_length=1000)]
Facet = tuple[str, list[tuple[str, str, int, bool]]]


@router.get("/search")
def show_search(
    request: Request,
    library: LibraryDep,
    q: Asked = "",
    video: Annotated[str, Query(max_length=100)] = "",
    order: Literal["best", "time"] = "best",
    cursor: Cursor = "",
) -> Response:
    """Hits, or what there is to find."""
    asks = bool(q.strip())
    of = f"search {order} {video} {q}"
    found = library.search(q, PAGE, unseal(request, cursor, of), video, order) if asks else SearchResult()
    return render(
        request,
        "search.html",
        q=q,
        video=video,
        order=order,
        found=found,
        cursor=seal(request, found.cursor, of),
        groups=_groups(library, found),
        facets=_facets(q, order, video, found),
        sentence=read_back(q) if asks and set(q) & set(':"*-~') else "",  # plain words explain themselves
        looser=_looser(library, q, found) if asks else None,
        similar=_similar(request, library, q, video) if asks and not found.total else "",
        summary=index_counts(request),
        working=len(library.jobs.page(JobState.RUNNING, limit=100).rows),
        notes=NOTES,
    )


@router.get("/search/complete")
def complete(request: Request, q: Asked = "") -> JSONResponse:
    """Whole queries that begin like this one."""
    before, _, last = q.rpartition(" ")
    begun = f"{before} " if before else ""
    found = [*_completions(last, index_counts(request)), *_spoken(last, known_words(request))]
    return JSONResponse([begun + word for word in dict.fromkeys(found)][:COMPLETIONS])


def _spoken(last: str, known: Vocabulary) -> list[str]:
    """Words that are said or written, also behind `say:` and `text:` and a sign."""
    sign = "-" if last.startswith("-") else ""
    field, colon, begun = last.removeprefix("-").partition(":")
    if colon and field not in {"say", "text"}:
        return []
    before, typed = (f"{sign}{field}:", begun) if colon else (sign, field)
    return [before + word for word in completions(typed, known, COMPLETIONS)] if typed.isalpha() else []


def _completions(last: str, known: Summary) -> list[str]:
    sign, last = ("-", last[1:]) if last.startswith("-") else ("", last)
    field, colon, begun = last.partition(":")
    if colon and field in FIELDS:
        start = " ".join(words(begun))
        labels = [t for t in known.labels.get(FIELDS[field], {}) if " ".join(words(t)).startswith(start)]
        return [f'{sign}{field}:"{label}"' if " " in label else f"{sign}{field}:{label}" for label in labels]
    fields = [f"{sign}{name}:" for name in NOTES if last and name.startswith(last)]
    seen = [f"{sign}{f}:{t}" for f, k in FIELDS.items() for t in known.labels.get(k, {}) if last and t.startswith(last)]
    return fields + [word for word in seen if " " not in word]


def _groups(library: Library, found: SearchResult) -> list[dict[str, Any]]:
    """The hits of each video on a page, and how many it has in all."""
    by_video: dict[str, list[tuple[Hit, HitShape]]] = {}
    for hit in found.hits:
        by_video.setdefault(hit.video, []).append((hit, HitShape.of(hit)))
    totals, videos = found.facets.get("video", {}), library.videos.get_many(by_video)
    return [
        {"video": videos.get(id), "id": id, "name": hits[0][0].name, "total": totals.get(id, len(hits)), "hits": hits}
        for id, hits in by_video.items()
    ]


def _facets(q: str, order: str, video: str, found: SearchResult) -> list[Facet]:
    asked = {"q": q, "order": order if order != "best" else "", "video": video}

    def by(token: str, word: str, count: int) -> tuple[str, str, int, bool]:
        return with_query("/search", {**asked, "q": toggle(q, token)}), word, count, token in q.split()

    counts = found.facets
    names = {hit.video: hit.name for hit in found.hits}
    kinds = [by(f"kind:{name}", kind_name(name), n) for name, n in counts.get("kind", {}).items()]
    spoken = [by(f"lang:{code}", language_name(code), n) for code, n in counts.get("language", {}).items()]
    months = [by(f"date:{month}", month, n) for month, n in counts.get("date", {}).items()]
    videos = [
        (with_query("/search", {**asked, "video": "" if video == id else id}), names[id], n, video == id)
        for id, n in counts.get("video", {}).items()
        if id in names
    ]
    rows: Sequence[Facet] = [("Found in", kinds), ("Video", videos[:8]), ("Language", spoken), ("Shot", months[:8])]
    return [(title, some) for title, some in rows if len(some) > 1 or any(on for *_, on in some)]


def _similar(request: Request, library: Library, q: str, video: str) -> str:
    return similar_query(q, known_words(request), lambda text: library.search(text, 1, "", video).total > 0)


def _looser(library: Library, q: str, found: SearchResult) -> tuple[str, int] | None:
    """The plain words, where the query finds less than they do."""
    plain = words_of(q)
    if not plain or plain == q.strip() or found.total > PAGE:
        return None
    total = library.search(plain, 1).total
    return (plain, total) if total > found.total else None


VERBS = {"speech": "said", "text": "written", "object": "seen", "person": "in the picture", "place": "filmed at",
         "entity": "mentioned", "shot": "as a shot", "picture": "seen", "name": "as the name of a video"}  # fmt: skip
LINKS = {"near": "within {0:g} s of", "before": "at most {0:g} s before", "during": "while", "with": "with"}
FILTERS = {"in": "in videos called", "lang": "in the language", "date": "shot"}


def read_back(query: str) -> str:
    """What is looked for, in words."""
    return "; or ".join(_clause(clause) for clause in parse(query).clauses)


def words_of(query: str) -> str:
    """Only the words, each for itself: what is looked for when nothing else is found."""
    terms = [term for clause in parse(query).clauses for term in clause.terms]
    return " ".join(dict.fromkeys(word for term in terms for word in (term.sentence.split() or term.words)))


def toggle(query: str, token: str) -> str:
    """The query with a filter put in, or taken out if it is there."""
    parts = query.split()
    return " ".join([p for p in parts if p != token] if token in parts else [*parts, token])


def _clause(clause: Clause) -> str:
    parts = [" and ".join(_term(t) for t in group) for group in clause.groups]
    for n, link in enumerate(clause.links):
        parts[n] += " " + LINKS[link.name].format(link.within_us / 1e6)
    return " ".join([" ".join(parts), *_asides(clause)])


def _asides(clause: Clause) -> Iterator[str]:
    for term in clause.never:
        yield f"without {_term(term)}"
    for narrow in clause.filters:
        yield _filter(narrow)


def _filter(narrow: Filter) -> str:
    return f"{'not ' if narrow.negated else ''}{FILTERS.get(narrow.name, narrow.name)} {narrow.value}"


def _term(term: Term) -> str:
    words = f"\u201c{' '.join(term.words)}\u201d"
    text = f"anything similar to \u201c{term.sentence}\u201d" if term.sentence else words
    text = "anything" if not term.words and not term.sentence else text + ("\u2026" if term.prefix else "")
    verbs = " or ".join(VERBS[kind] for kind in term.kinds if kind in VERBS)
    return f"{text} {verbs}" if verbs else text
