"""The search grammar: words, "phrases", prefix*, -not, OR, fields, filters and time; no text is an error.

A query is clauses joined by OR. A clause is groups joined by `near:5s`, `before` or `during`; the terms of a group are
there at one time. Filters narrow a clause to videos and languages.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rushes.index.tokenizer import words

FIELDS = {"say": "speech", "text": "text", "object": "object", "person": "person", "place": "place", "entity": "entity"}
KINDS = {**{kind: kind for kind in FIELDS.values()}, **FIELDS, "speech": "speech", "face": "person"}
FILTERS = ("in", "lang", "kind", "date")
ENTITY = "entity"  # a part of a text that is a hit itself: found only where it is asked for
MAX_WORDS = 32
MAX_CHARACTERS = 20_000
NEAR_US, BEFORE_US, FAR_US = 5_000_000, 60_000_000, 3_600_000_000

_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02", '"'))
_PART = re.compile(
    r"(?P<head>-?(?:(?P<field>[A-Za-z]+):)?)"
    r'(?P<semantic>~?)(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<plain>[^\s"]+))(?P<star>\*?)'
)
_LINK = re.compile(
    r"(?P<name>near|before|during|NEAR|BEFORE|DURING)(?::(?P<number>\d{1,9}(?:\.\d{1,6})?)(?P<unit>ms|s|m|min|h)?)?"
)
_UNITS_US = {"ms": 1000, "s": 1_000_000, "m": 60_000_000, "min": 60_000_000, "h": 3_600_000_000}
_DAY = r"\d{4}(?:-\d{2}(?:-\d{2})?)?"
_DATE = re.compile(rf"(?P<first>{_DAY})?(?P<range>\.\.)?(?P<last>{_DAY})?")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class Term:
    """Words that follow each other; the last may be only a beginning. None at all means anything of its kinds."""

    words: tuple[str, ...]
    prefix: bool = False
    kinds: tuple[str, ...] = ()  # none: any kind but those of `without`
    without: tuple[str, ...] = (ENTITY,)
    sentence: str = ""  # a sentence: what means alike is looked for, not its words

    def of(self, kind: str) -> bool:
        """Whether it looks at observations of a kind."""
        return kind in self.kinds if self.kinds else kind not in self.without

    def by_words(self) -> "list[Term]":
        """A sentence as its words, each by itself."""
        return [replace(self, words=(word,), sentence="") for word in self.words] if self.sentence else [self]


@dataclass(frozen=True, slots=True)
class Link:
    """How two groups lie in time: `near`, `before` or `during`, at most so far apart."""

    name: str
    within_us: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """`in`, `lang` or `date` with its value; only what it holds for, or only what it does not."""

    name: str
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """Groups of terms with a link between neighbours, terms that must not be there, and filters."""

    groups: tuple[tuple[Term, ...], ...]
    links: tuple[Link, ...] = ()
    never: tuple[Term, ...] = ()
    filters: tuple[Filter, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every term that must be there."""
        return tuple(term for group in self.groups for term in group)

    def by_words(self) -> "Clause":
        """The same by its words alone."""
        groups = tuple(tuple(word for term in group for word in term.by_words()) for group in self.groups)
        return replace(self, groups=groups, never=tuple(word for term in self.never for word in term.by_words()))


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for; no clause finds nothing, and the note says why."""

    clauses: tuple[Clause, ...]
    note: str = ""

    @property
    def is_semantic(self) -> bool:
        """Whether something is looked for by what it means."""
        return any(term.sentence for clause in self.clauses for term in (*clause.terms, *clause.never))

    def by_words(self) -> "Query":
        """The same by its words alone, where nothing can compare what they mean."""
        return Query(tuple(clause.by_words() for clause in self.clauses), self.note)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a query: a term or a filter, perhaps negated; a link; or OR."""

    item: Term | Filter | Link | None
    negated: bool = False
    fielded: bool = False
    text: str = ""  # as it was typed, for a link that stands where none can


def parse(text: str) -> Query:
    """The query that a text means. Never raises."""
    found = _links_only_between(list(_parts(text[:MAX_CHARACTERS])))
    kept = list(_within_limit(found))
    clauses = []
    for joined, parts in groupby(kept, key=lambda part: part.item is None):
        clause = None if joined else _clause(list(parts))
        clauses += [clause] if clause else []
    cut = kept != found or len(text) > MAX_CHARACTERS
    return Query(tuple(clauses), _note(clauses, asked=any(part.item for part in found), cut=cut))


def _clause(parts: Sequence[_Part]) -> Clause | None:
    groups: list[list[Term]] = [[]]
    links, never, filters = list[Link](), list[Term](), list[Filter]()
    for part in parts:
        match part.item:
            case Link():
                links.append(part.item)
                groups.append([])
            case Filter():
                filters.append(replace(part.item, negated=part.negated))
            case Term() if part.negated:
                never.append(part.item)
            case Term():
                groups[-1].append(part.item)
    kinds = [f for f in filters if f.name == "kind"]
    filters = [f for f in filters if f.name != "kind"]
    if not any(groups) and (kinds or any(not f.negated for f in filters)):
        groups = [[Term(())]]
    if not all(groups):
        return None
    narrowed = tuple(tuple(_of_kinds(term, kinds) for term in group) for group in groups)
    return Clause(narrowed, tuple(links), tuple(never), tuple(filters))


def _of_kinds(term: Term, filters: Sequence[Filter]) -> Term:
    """A term without a field looks at the kinds that the clause names."""
    if term.kinds or not filters:
        return term
    wanted = tuple(dict.fromkeys(f.value for f in filters if not f.negated))
    return replace(term, kinds=wanted, without=(*term.without, *(f.value for f in filters if f.negated)))


def _links_only_between(parts: list[_Part]) -> list[_Part]:
    """A link between two terms is one; elsewhere it is a plain word, as `before` without fields on both sides is."""
    out: list[_Part] = []
    for n, part in enumerate(parts):
        if isinstance(part.item, Link) and not _links(out, part, parts[n + 1 :]):
            said = tuple(words(part.text))
            out += [_Part(Term(said))] if said else []
        else:
            out.append(part)
    return out


def _links(before: Sequence[_Part], link: _Part, after: Sequence[_Part]) -> bool:
    left = next((p for p in reversed(before) if not _is_aside(p)), None)
    right = next((p for p in after if not _is_aside(p)), None)
    if left is None or right is None or not isinstance(left.item, Term) or not isinstance(right.item, Term):
        return False
    return not link.text.isalpha() or link.text.isupper() or (left.fielded and right.fielded)


def _is_aside(part: _Part) -> bool:
    return isinstance(part.item, Filter) or (isinstance(part.item, Term) and part.negated)


def _within_limit(found: Sequence[_Part]) -> Iterator[_Part]:
    left = MAX_WORDS
    for part in found:
        if not isinstance(part.item, Term) or len(part.item.words) <= left:
            yield part
        elif left:
            yield replace(part, item=replace(part.item, words=part.item.words[:left], prefix=False))
        left = max(0, left - len(part.item.words)) if isinstance(part.item, Term) else left


def _parts(text: str) -> Iterator[_Part]:
    sentence: list[str] | None = None  # the plain words after ~
    for part in _PART.finditer(text.translate(_QUOTES)):
        plain = not part["head"] and part["phrase"] is None
        if sentence is not None and plain and not _is_word_of_grammar(part[0]):
            sentence.append(part[0])
            continue
        if sentence is not None:
            yield from _sentence(sentence)
            sentence = None
        if plain and part["semantic"]:
            sentence = [part["plain"]]
        else:
            yield from _part(part)
    yield from _sentence(sentence or ())


def _is_word_of_grammar(text: str) -> bool:
    return text in {"OR", "|", "AND"} or bool(_LINK.fullmatch(text))


def _sentence(plain: Sequence[str]) -> Iterator[_Part]:
    found = tuple(words(" ".join(plain)))
    if found:
        yield _Part(Term(found, sentence=" ".join(plain)))


def _part(part: re.Match[str]) -> Iterator[_Part]:
    link = _LINK.fullmatch(part[0])
    if part[0] in {"OR", "|"}:
        yield _Part(None)
    elif link:
        yield _Part(_link(link), text=part[0])
    elif part[0] != "AND":
        item = _filter(part) or _term(part)
        fielded = isinstance(item, Term) and bool(item.kinds)
        if isinstance(item, Filter) or item.words or item.kinds:
            yield _Part(item, part["head"].startswith("-"), fielded, part[0])


def _link(found: re.Match[str]) -> Link:
    name = found["name"].lower()
    default = {"near": NEAR_US, "before": BEFORE_US}.get(name, 0)
    if not found["number"] or not default:
        return Link(name, default)
    return Link(name, min(FAR_US, int(float(found["number"]) * _UNITS_US[found["unit"] or "s"])))


def _filter(part: re.Match[str]) -> Filter | None:
    name = (part["field"] or "").lower()
    value = part["phrase"] if part["phrase"] is not None else part["plain"]
    if name == "in" and words(value):
        return Filter(name, value)
    if name == "kind" and value.lower() in KINDS:
        return Filter(name, KINDS[value.lower()])
    if name == "lang" and _LANGUAGE.fullmatch(value):
        return Filter(name, value.lower())
    dated = _DATE.fullmatch(value) if name == "date" else None
    return Filter(name, value) if dated and (dated["first"] or dated["last"]) else None


def _term(part: re.Match[str]) -> Term:
    field, body = (part["field"] or "").lower(), part["phrase"] if part["phrase"] is not None else part["plain"]
    kinds = (FIELDS[field],) if field in FIELDS else ()
    said = tuple(words(body if kinds else f"{field} {body}"))
    prefix = bool(part["star"]) or (part["phrase"] is None and body.endswith("*"))
    if part["semantic"] and said:
        return Term(said, kinds=kinds, sentence=body)
    if not said and kinds and body.strip("*"):
        kinds = ()  # say:! is nothing, say:* is everything that is said
    return Term(said, prefix and bool(said), kinds if said or prefix else ())


def _note(clauses: Sequence[Clause], *, asked: bool, cut: bool) -> str:
    if clauses:
        return f"only the first {MAX_WORDS} words were searched" if cut else ""
    return "say what to look for, not only what to leave out" if asked else "no words to look for"
