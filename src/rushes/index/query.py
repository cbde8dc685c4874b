"""Parsed queries as values: clauses of terms that occur together, related in time, narrowed by filters."""

from dataclasses import dataclass, replace

FIELDS = {"say": "speech", "text": "text", "object": "object", "person": "person", "place": "place", "entity": "entity",
          "shot": "shot", "picture": "picture", "name": "name"}  # fmt: skip
KINDS = {**{kind: kind for kind in FIELDS.values()}, **FIELDS, "face": "person"}
ENTITY = "entity"  # a part of a text that is a hit itself: found only where it is asked for
NAME = "name"  # of a video: a passage as long as the video
SHOT = "shot"  # a stretch without a cut: found only where it is asked for, because it has no words of its own
PICTURE = "picture"  # what a frame shows: found by a sentence alone, because it has no words at all


@dataclass(frozen=True, slots=True)
class Term:
    """Words that follow each other; the last may be only a beginning. None at all means anything of its kinds."""

    words: tuple[str, ...]
    prefix: bool = False
    kinds: tuple[str, ...] = ()  # none: any kind but those of `without`
    without: tuple[str, ...] = (ENTITY, SHOT, PICTURE)
    sentence: str = ""  # a sentence: what means alike is looked for, not its words

    def of(self, kind: str) -> bool:
        """Whether it looks at observations of a kind."""
        if self.kinds:
            return kind in self.kinds
        return kind not in self.without or (kind == PICTURE and bool(self.sentence))

    def by_words(self) -> "list[Term]":
        """A sentence as its words, each by itself."""
        return [replace(self, words=(word,), sentence="") for word in self.words] if self.sentence else [self]


@dataclass(frozen=True, slots=True)
class Link:
    """How two groups lie in time: `near`, `before`, `during` or `with`, at most so far apart.

    A `with` B is A alone, where B is there at some time of it.
    """

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
