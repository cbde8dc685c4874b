"""A video as readers see it, combined from its runs. Pure, the same for every backend."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rushes.domain.keys import JSON
from rushes.index.port import Video
from rushes.index.tokenizer import safe

LABELLED = ("entity", "object", "person", "place")  # kinds whose texts are few and often the same


def video_of(row: Sequence[Any]) -> Video:
    """The video of a row of the index; its runs are newest first, at least one."""
    owner, id, added_at, duration_us, languages, renamed, published, runs = row
    found = [(*run, json.loads(facts)) for *run, facts in json.loads(runs)]
    job, recipe, state, facts = found[0]
    names = json.loads(published)
    return Video(
        owner=owner,
        id=id,
        added_at=added_at,
        duration_us=duration_us,
        job=job,
        recipe=recipe,
        state=state,
        jobs=tuple(job for job, *_ in found),
        paths=tuple(dict.fromkeys(str(facts.get("path") or "") for *_, facts in found)),
        languages=tuple(json.loads(languages)),
        poster=next((name for name in names if name.endswith(".jpg")), ""),
        proxy=next((name for name in names if name.endswith(".m3u8")), ""),
        **_facts_of(facts) | ({"name": safe(json.loads(renamed))} if renamed else {}),
    )


def _facts_of(facts: Mapping[str, JSON]) -> dict[str, JSON]:
    """What the facts of its newest run say of a video."""
    rate = facts.get("rate")
    return {
        **{name: str(facts.get(name) or "") for name in ("path", "sha256", "container", "shot_at")},
        **{name: safe(str(facts.get(name) or "")) for name in ("name", "title")},
        **{name: int(facts.get(name) or 0) for name in ("size", "width", "height")},
        "rate": (int(rate[0]), int(rate[1])) if rate else None,
        "audio": bool(facts.get("audio")),
    }


def are_facts(facts: Mapping[str, JSON]) -> bool:
    """Whether a video can be made of facts that somebody else wrote down."""
    try:
        _facts_of(facts)
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
