"""The search grammar: words, "phrases", prefix*, NOT, OR, (groups), fields, filters and time; no text is an error.

A text is read into alternatives (OR), each a sequence of parts; parentheses are multiplied out, so that a query is
always clauses joined by OR. What is not understood is looked for as plain words, and the note says so.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice, product

from rushes.index.dates import EXAMPLES, date_range
from rushes.index.labels import labels_like
from rushes.index.query import FIELDS, KINDS, SHOT, Clause, Filter, Link, Query, Term
from rushes.index.tokenizer import words

FILTERS = ("in", "lang", "kind", "date")
MAX_WORDS = 32
MAX_CLAUSES = 32  # ways of a query once its parentheses are multiplied out
MAX_DEPTH = 20  # parentheses inside parentheses
MAX_LABELS = 3  # plain words that are also looked for as the label of an object
MAX_CHARACTERS = 20_000
NEAR_US, BEFORE_US, FAR_US = 5_000_000, 60_000_000, 3_600_000_000

_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02", '"'))
_PART = re.compile(
    r"(?P<minus>-?)(?:(?P<field>[A-Za-z]+):)?"
    r'(?P<semantic>~?)(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<plain>[^\s"]+))(?P<star>\*?)'
)
_OPEN = re.compile(r"(?P<minus>-?)(?:(?P<field>[A-Za-z]+):)?\(")
_LINK = re.compile(
    r"(?P<name>near|before|during|with)(?P<colon>:(?:(?P<number>\d{1,9}(?:\.\d{1,6})?)(?P<unit>ms|s|m|min|h)?)?)?",
    re.IGNORECASE,
)
_UNITS_US = {"ms": 1000, "s": 1_000_000, "m": 60_000_000, "min": 60_000_000, "h": 3_600_000_000}
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a clause: a term or a filter, perhaps negated, or a link."""

    item: Term | Filter | Link
    negated: bool = False
    fielded: bool = False
    text: str = ""  # as it was typed, for a link that stands where none can


_Ways = list[list[_Part]]  # alternatives, each a sequence of parts


@dataclass(frozen=True, slots=True)
class _Lexeme:
    """A word, a phrase, `(` or `)` of a query, with the sign and the field before it."""

    text: str
    negated: bool = False
    field: str = ""
    body: str = ""
    quoted: bool = False
    semantic: bool = False
    prefix: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it can go on with the sentence after ~."""
        return not (self.negated or self.field or self.quoted or self.is_operator or _LINK.fullmatch(self.text))

    @property
    def is_operator(self) -> bool:
        """Whether it joins, groups or negates."""
        return not self.quoted and self.body in {"OR", "|", "AND", "NOT", "(", ")"}


def parse(text: str, today: date | None = None) -> Query:
    """The query that a text means; dates by word are counted from today. Never raises."""
    parser = _Parser(list(_lexemes(text[:MAX_CHARACTERS])), today or date.today())  # noqa: DTZ011 - the viewer's day
    if len(text) > MAX_CHARACTERS:
        parser.say_cut()
    ways = parser.alternatives()
    clauses = tuple(clause for way in ways if (clause := _clause(_links_only_between(way))))
    if not clauses:
        asked = any(isinstance(part.item, Term | Filter) for way in ways for part in way)
        parser.say("the query only excludes words: add a word to search for" if asked else "no words to search for")
    return Query(clauses, "; ".join(parser.notes))


# From text to lexemes
def _lexemes(text: str) -> Iterator[_Lexeme]:
    text, at, depth = text.translate(_QUOTES), 0, 0
    while at < len(text):
        if depth and text[at] == ")":
            yield _Lexeme(")", body=")")
            at, depth = at + 1, depth - 1
        elif depth < MAX_DEPTH and (opened := _OPEN.match(text, at)):
            yield _Lexeme("(", bool(opened["minus"]), (opened["field"] or "").lower(), "(")
            at, depth = opened.end(), depth + 1
        elif part := _PART.match(text, at):
            closing = _closing(part["plain"] or "", depth)
            yield from _lexeme(part, closing)
            at = part.end() - closing
        else:
            at += 1


def _lexeme(part: re.Match[str], closing: int) -> Iterator[_Lexeme]:
    body = part["phrase"] if part["plain"] is None else part["plain"][: len(part["plain"]) - closing]
    quoted = part["plain"] is None
    prefix = bool(part["star"]) or (not quoted and body.endswith("*"))
    if body:
        typed = part[0][: len(part[0]) - closing]
        field_name = (part["field"] or "").lower()
        yield _Lexeme(typed, bool(part["minus"]), field_name, body, quoted, bool(part["semantic"]), prefix)


def _closing(plain: str, depth: int) -> int:
    """How many parentheses at the end of a word close a group: those that the word did not open itself."""
    spare = plain.count(")") - plain.count("(")
    return max(0, min(depth, spare, len(plain) - len(plain.rstrip(")"))))


# From lexemes to ways
@dataclass
class _Parser:
    """Reads lexemes from left to right; what was not understood is kept as notes."""

    lexemes: Sequence[_Lexeme]
    today: date
    at: int = 0
    words_left: int = MAX_WORDS
    labels_left: int = MAX_LABELS
    notes: list[str] = field(default_factory=list)

    def say(self, note: str) -> None:
        """Note something once."""
        self.notes += [note] if note not in self.notes else []

    def say_cut(self) -> None:
        """Note that not all of the query was read."""
        self.say(f"only the first {MAX_WORDS} words were searched")

    def alternatives(self, inside: str = "", *, grouped: bool = False) -> _Ways:
        """Sequences joined by OR, to the end or to the parenthesis that closes the group; `inside` is its field."""
        ways: _Ways = []
        sequence: _Ways = [[]]
        while (lexeme := self._next()) and not (grouped and lexeme.body == ")" and not lexeme.quoted):
            if lexeme.is_operator and lexeme.body in {"OR", "|"}:
                ways, sequence = ways + sequence, [[]]
            elif not (lexeme.is_operator and lexeme.body in {"AND", ")"}):
                sequence = self._product(sequence, self._item(lexeme, inside))
        if grouped and lexeme is None:
            self.say("a parenthesis is not closed")
        return [way for way in ways + sequence if way] or [[]]

    def _next(self) -> _Lexeme | None:
        self.at += 1
        return self.lexemes[self.at - 1] if self.at <= len(self.lexemes) else None

    def _item(self, lexeme: _Lexeme, inside: str) -> _Ways:
        if lexeme.is_operator and lexeme.body == "NOT":
            following = self._next()
            if following is None or (following.is_operator and following.body != "("):
                self.at -= following is not None
                return self._one(replace(lexeme, body="not"), inside)
            return _negated(self._item(following, inside))
        if lexeme.is_operator and lexeme.body == "(":
            found = self.alternatives(lexeme.field or inside, grouped=True)
        elif lexeme.semantic and lexeme.is_plain:
            found = self._sentence(lexeme, inside)
        else:
            found = self._one(lexeme, inside)
        return _negated(found) if lexeme.negated else found

    def _sentence(self, first: _Lexeme, inside: str) -> _Ways:
        """The plain words after ~."""
        said = [first.body]
        while self.at < len(self.lexemes) and self.lexemes[self.at].is_plain:
            said.append(self.lexemes[self.at].body)
            self.at += 1
        return self._one(replace(first, body=" ".join(said), prefix=False), inside)

    def _one(self, lexeme: _Lexeme, inside: str) -> _Ways:
        link = _LINK.fullmatch(lexeme.text)
        if link:
            return [[_Part(self._link(link), text=lexeme.text)]]
        name = lexeme.field or inside
        narrowed = self._filter(name, lexeme.body)
        if narrowed:
            return [[_Part(narrowed, text=lexeme.text)]]
        term = self._within_limit(self._term(lexeme, name))
        if not (term.words or term.kinds):
            return [[]]
        return [[_Part(term, fielded=bool(term.kinds), text=lexeme.text)] for term in self._with_labels(term, lexeme)]

    def _link(self, found: re.Match[str]) -> Link:
        name = found["name"].lower()
        default = {"near": NEAR_US, "before": BEFORE_US}.get(name, 0)
        if found["colon"] and not found["number"]:
            self.say(f"{name}: needs a time, such as {name}:5s" if default else f"{name} takes no time")
        if not found["number"] or not default:
            return Link(name, default)
        return Link(name, min(FAR_US, int(float(found["number"]) * _UNITS_US[(found["unit"] or "s").lower()])))

    def _filter(self, name: str, value: str) -> Filter | None:
        if name == "in" and words(value):
            return Filter(name, value)
        if name == "kind" and value.lower() in KINDS:
            return Filter(name, KINDS[value.lower()])
        if name == "lang" and _LANGUAGE.fullmatch(value):
            return Filter(name, value.lower())
        if name == "date" and (days := date_range(value, self.today)):
            return Filter(name, days)
        if name in _WANTED:
            self.say(f"{name}:{value} is not understood, so its words were searched: {_WANTED[name]}")
        elif name in _LINKS:
            self.say(f"{name}:{value} is not understood, so its words were searched: write {name}:5s")
        elif name and name not in FIELDS and not value.startswith("//"):
            self.say(f"{name}: is not a field, so its words were searched. {_meant(name)}")
        return None

    def _term(self, lexeme: _Lexeme, name: str) -> Term:
        kinds = (FIELDS[name],) if name in FIELDS else ()
        said = tuple(words(lexeme.body if kinds else f"{lexeme.field} {lexeme.body}"))
        if lexeme.semantic and said:
            return Term(said, kinds=kinds, sentence=lexeme.body)
        if not said and kinds and lexeme.body.strip("*"):
            kinds = ()  # say:! is nothing, say:* is everything that is said
        return Term(said, lexeme.prefix and bool(said), kinds if said or lexeme.prefix else ())

    def _within_limit(self, term: Term) -> Term:
        left = self.words_left
        self.words_left = max(0, left - len(term.words))
        if len(term.words) <= left:
            return term
        self.say_cut()
        return replace(term, words=term.words[:left], prefix=False, kinds=term.kinds if left else ())

    def _with_labels(self, term: Term, lexeme: _Lexeme) -> list[Term]:
        """The term, and the labels of objects that it means: `cars` is seen as `car`."""
        if term.prefix or term.sentence or (term.kinds not in {(), ("object",)}) or (lexeme.quoted and not term.kinds):
            return [term]
        found = labels_like(term.words, known_only=not term.kinds)
        if not found or (not term.kinds and not self.labels_left):
            return [term]
        self.labels_left -= not term.kinds
        return [term, *(Term(label, kinds=("object",)) for label in found)]

    def _product(self, left: _Ways, right: _Ways) -> _Ways:
        if len(left) * len(right) > MAX_CLAUSES:
            self.say(f"only the first {MAX_CLAUSES} ways to read this were searched")
        return [[*a, *b] for a, b in islice(product(left, right), MAX_CLAUSES)]


_LINKS = ("near", "before", "during", "with")
_WANTED = {"in": "write a part of a video's name", "kind": f"kinds are {', '.join(dict.fromkeys(KINDS.values()))}",
           "lang": "write a code, such as lang:en", "date": f"write {EXAMPLES}"}  # fmt: skip


def _meant(name: str) -> str:
    known = [*FIELDS, *FILTERS, *_LINKS]
    close = difflib.get_close_matches(name, known, 1, 0.7)
    return f"Did you mean {close[0]}:?" if close else f"Fields: {', '.join(known)}"


def _negated(ways: _Ways) -> _Ways:
    """Not (a b OR c): not a and not c, or not b and not c. Links inside are left out."""
    flipped = [[replace(p, negated=not p.negated) for p in way if not isinstance(p.item, Link)] for way in ways]
    return [list(way) for way in islice(product(*flipped), MAX_CLAUSES)]


# From a way to a clause
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
    elif any(groups) and Filter("kind", SHOT) in kinds:
        kinds.remove(Filter("kind", SHOT))
        groups, links = [[Term((), kinds=(SHOT,))], *groups], [Link("with"), *links]
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
