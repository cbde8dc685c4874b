"""A video as readers see it, made of its runs. Pure: every backend tells the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.index.port import Video
from rushes.index.tokenizer import safe

LABELLED = ("entity", "object", "person", "place")  # kinds whose texts are few and often the same


@dataclass(frozen=True, slots=True)
class Row:
    """What an index keeps of a video itself."""

    owner: str
    id: str
    added_at: str
    duration_us: int
    languages: Sequence[str]
    renamed: str | None  # the name that a person gave
    published: Sequence[str]


@dataclass(frozen=True, slots=True)
class RunRow:
    """What an index keeps of one of its runs."""

    job: str
    recipe: str
    state: str
    facts: Mapping[str, JSON]


def video_of(row: Row, runs: Sequence[RunRow]) -> Video:
    """The video; `runs` are newest first, at least one."""
    newest, facts = runs[0], runs[0].facts
    rate = facts.get("rate")
    return Video(
        owner=row.owner,
        id=row.id,
        name=safe(str(facts.get("name") or "") if row.renamed is None else row.renamed),
        path=str(facts.get("path") or ""),
        sha256=str(facts.get("sha256") or ""),
        size=int(facts.get("size") or 0),
        duration_us=row.duration_us,
        width=int(facts.get("width") or 0),
        height=int(facts.get("height") or 0),
        rate=(int(rate[0]), int(rate[1])) if rate else None,
        audio=bool(facts.get("audio")),
        container=str(facts.get("container") or ""),
        title=safe(str(facts.get("title") or "")),
        shot_at=str(facts.get("shot_at") or ""),
        added_at=row.added_at,
        job=newest.job,
        recipe=newest.recipe,
        state=newest.state,
        jobs=tuple(run.job for run in runs),
        paths=tuple(dict.fromkeys(str(run.facts.get("path") or "") for run in runs)),
        languages=tuple(row.languages),
        poster=next((name for name in row.published if name.endswith(".jpg")), ""),
        proxy=next((name for name in row.published if name.endswith(".m3u8")), ""),
    )


def are_facts(facts: Mapping[str, JSON]) -> bool:
    """Whether a video can be made of facts that somebody else wrote down."""
    try:
        video_of(Row("", "", "", 0, (), None, ()), [RunRow("", "", "", facts)])
        return 0 <= int(shown_facts(facts)["duration_us"]) < 2**63
    except (TypeError, ValueError, LookupError, ArithmeticError):
        return False


def shown_facts(facts: Mapping[str, JSON]) -> dict[str, JSON]:
    """What lists, filters and orders need of a run's facts."""
    return {
        "duration_us": int(facts.get("duration_us") or 0),
        **{name: _carried(str(facts.get(name) or "")) for name in ("name", "path", "shot_at")},
    }


def _carried(text: str) -> str:
    """Text that every store takes: what is none, as bytes of a file name may be, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
