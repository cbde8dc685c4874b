"""The index in PostgreSQL: text search over words that our own tokenizer made."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from rushes.domain.errors import WrongHome
from rushes.domain.observation import Observation
from rushes.index.hits import hit
from rushes.index.places import cursor_of, legible, place_of
from rushes.index.port import Found, Offer, Rate, Run, Summary, Video
from rushes.index.postgres_words import expression, sought, vector
from rushes.index.query import parse
from rushes.index.videos import Row as VideoRow
from rushes.index.videos import RunRow, video_of
from rushes.index.words import VERSION as WORDS
from rushes.index.words import words
from rushes.postgres.schema import scripted
from rushes.postgres.store import Postgres, Row, Turn, statements

T = TypeVar("T")
SCHEMA = 1
_VERSION = SCHEMA * 1000 + WORDS
_MOST = 1000
_ALONE = 7310030
_HERE = Path(__file__)
_SQL = statements(_HERE.with_name("postgres.sql"))
_PLACE = ("score", "at_video", "at_start", "at_end", "at_kind", "at_key", "at_n")
_NOWHERE = (0.0, "", 0, 0, "", "", 0)
_TABLES = ("cursor", "job", "run", "video", "renamed", "published", "offer", "shown", "line", "size", "rate")


class PostgresIndex:
    """A projection in tables, readable by any process while one follows."""

    def __init__(self, db: Postgres) -> None:
        self._db = db
        if self._version() != _VERSION:
            db.write("index", _SQL, self._make)

    def search(self, owner: str, query: str, limit: int = 20, cursor: str = "", video: str = "") -> Found:
        """As the port says."""
        begun = time.perf_counter()
        asked = parse(query)
        if not asked.clauses:
            return Found(note=asked.note, took_ms=_since(begun))
        limit = max(1, min(limit, _MOST))
        place = place_of(cursor, len(_PLACE))
        terms = json.dumps([{"said": t.said, "prefix": t.prefix, "query": t.query} for t in sought(asked)])
        what = {"query": expression(asked), "terms": terms, "owner": legible(owner), "video": legible(video)}
        after = dict(zip(_PLACE, place or _NOWHERE, strict=True)) | {"after": place is not None, "limit": limit + 1}
        rows = self._ask("search", **what, **after)
        total, videos = rows[0][:2]
        found = [row[2:] for row in rows if row[2] is not None]
        names = self._names(owner, {row[1] for row in found[:limit]})
        hits = tuple(hit(asked, _line(row[7]), row[1], names[row[1]], -row[0]) for row in found[:limit])
        more = cursor_of(found[limit - 1][:7]) if len(found) > limit else ""
        return Found(hits, total, videos, more, asked.note, _since(begun))

    def videos(self, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Video, ...], str]:
        """As the port says."""
        added_at, id = place_of(cursor, 2) or ("", "")
        limit = max(1, min(limit, _MOST))
        found = self._videos(owner, None, limit + 1, added_at, id)
        more = cursor_of((found[limit - 1].added_at, found[limit - 1].id)) if len(found) > limit else ""
        return tuple(found[:limit]), more

    def video(self, owner: str, id: str) -> Video | None:
        """As the port says."""
        return next(iter(self._videos(owner, [legible(id)], 1)), None)

    def lines(self, owner: str, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        """As the port says."""
        rows = self._ask("lines", owner=legible(owner), video=legible(video), kind=kind)
        return tuple(_line(doc) for (doc,) in rows)

    def rates(self, stage: str, machine: str, limit: int = 500) -> tuple[Rate, ...]:
        """As the port says."""
        return tuple(Rate(*row) for row in self._ask("rates", stage=stage, machine=machine, limit=limit))

    def summary(self, owner: str) -> Summary:
        """As the port says."""
        kinds: dict[str, int] = {}
        languages: dict[str, int] = {}
        ((videos, duration_us),) = self._ask("summary", owner=owner)
        for kind, language, count in self._ask("summary_lines", owner=owner):
            kinds[kind] = kinds.get(kind, 0) + count
            if language:
                languages[language] = languages.get(language, 0) + count
        return Summary(videos, duration_us, kinds, languages)

    def alone(self, patience: float = 2.0) -> AbstractContextManager[bool]:
        """As the port says."""
        return self._db.alone(_ALONE, patience)

    def reset(self) -> None:
        """As the port says."""
        tables = ", ".join(f"rushes_index.{name}" for name in _TABLES)
        self._write(lambda turn: turn.run_text(f"TRUNCATE {tables}"))

    def cursor(self, name: str) -> str:
        """As the port says."""
        rows = self._ask("cursor", name=name)
        return str(rows[0][0]) if rows else ""

    def queue(self, name: str, cursor: str, jobs: Iterable[str] = ()) -> None:
        """As the port says."""

        def keep(turn: Turn) -> None:
            turn.run("queue", jobs=list(jobs))
            turn.run("keep_cursor", name=name, value=cursor)

        self._write(keep)

    def queued(self, limit: int) -> tuple[tuple[str, int], ...]:
        """As the port says."""
        return tuple((job, number) for job, number in self._ask("queued", limit=limit))

    def met(self, job: str, number: int) -> None:
        """As the port says."""
        self._write(lambda turn: turn.run("met", job=job, number=number))

    def take_in(self, run: Run, offers: Sequence[Offer], names: Mapping[str, str], rates: Sequence[Rate]) -> None:
        """As the port says."""
        who = {"owner": run.owner, "video": run.video}

        def keep(turn: Turn) -> None:
            turn.run("run", **{**asdict(run), "facts": json.dumps(run.facts)})
            ((newest,),) = turn.all("newest_facts", **who)
            turn.run("video_row", **who, duration_us=int(json.loads(newest).get("duration_us") or 0))
            turn.run("offer", rows=json.dumps([asdict(offer) for offer in offers]))
            turn.run("publish", **who, names=json.dumps(dict(names)))
            turn.run("rates_add", rows=json.dumps([asdict(rate) for rate in rates]))

        self._write(keep)

    def learn(self, rates: Sequence[Rate]) -> None:
        """As the port says."""
        self._write(lambda turn: turn.run("rates_add", rows=json.dumps([asdict(rate) for rate in rates])))

    def rename(self, owner: str, video: str, name: str | None) -> None:
        """As the port says."""
        statement = "unname" if name is None else "rename"
        self._write(lambda turn: turn.run(statement, owner=owner, video=video, name=json.dumps(name)))

    def unsettled(self) -> tuple[tuple[str, str], ...]:
        """As the port says."""
        return tuple((owner, video) for owner, video in self._ask("unsettled"))

    def offers(self, owner: str, video: str) -> tuple[tuple[Offer, str], ...]:
        """As the port says."""
        return tuple((Offer(*row[:-1]), row[-1]) for row in self._ask("offers", owner=owner, video=video))

    def shown(self, owner: str, video: str) -> frozenset[tuple[str, str, str]]:
        """As the port says."""
        return frozenset((kind, key, sha) for kind, key, sha in self._ask("shown", owner=owner, video=video))

    def show(
        self,
        owner: str,
        video: str,
        add: Sequence[tuple[Offer, Sequence[Observation]]],
        drop: Iterable[tuple[str, str]],
    ) -> None:
        """As the port says."""

        def keep(turn: Turn) -> None:
            for kind, key in drop:
                turn.run("drop", owner=owner, video=video, kind=kind, key=key)
            for offer, observations in add:
                _add(turn, offer, [_row(n, line) for n, line in enumerate(observations)])
            turn.run("settle", owner=owner, video=video)

        self._write(keep)

    def keys(self, owner: str = "") -> tuple[tuple[str, str], ...]:
        """As the port says."""
        return tuple((whose, key) for whose, key in self._ask("keys", owner=owner))

    def forget(self, owner: str, keys: Iterable[str]) -> None:
        """As the port says."""
        these = list(keys)

        def keep(turn: Turn) -> None:
            for statement in ("unsettle_keys", "forget_offers", "forget_names"):
                turn.run(statement, owner=owner, keys=these)

        self._write(keep)

    def close(self) -> None:
        """Let go of idle connections."""
        self._db.close()

    def _version(self) -> int:
        """The version that is there, 0 if there is none.

        Raises:
            WrongHome: it is newer than this code.
        """
        rows = self._ask("version") if self._ask("there")[0][0] else []
        return _checked(rows[0][0]) if rows else 0

    def _make(self, turn: Turn) -> None:
        """Drop whatever is there and make the tables, unless another process just did."""
        turn.all("alone")
        there = turn.column("there")[0] and turn.column("version")
        if not there or _checked(there[0]) != _VERSION:
            turn.run_text("DROP SCHEMA IF EXISTS rushes_index CASCADE")
            scripted(turn, _HERE.with_name("postgres_schema.sql"))
            turn.run("keep_version", version=_VERSION)

    def _videos(
        self, owner: str, ids: list[str] | None, limit: int, added_at: str = "", after: str = ""
    ) -> list[Video]:
        rows = self._ask("videos", owner=legible(owner), ids=ids, limit=limit, added_at=added_at, after=after)
        return [_video(row) for row in rows]

    def _names(self, owner: str, ids: set[str]) -> dict[str, str]:
        return {video.id: video.name for video in self._videos(owner, list(ids), len(ids))} if ids else {}

    def _ask(self, name: str, /, **values: object) -> list[Row]:
        return self._db.ask(_SQL[name], values)

    def _write(self, body: Callable[[Turn], object]) -> None:
        self._db.write("index", _SQL, body)


def _add(turn: Turn, offer: Offer, rows: list[dict[str, object]]) -> None:
    place = {"owner": offer.owner, "video": offer.video, "kind": offer.kind, "key": offer.key}
    turn.run("add_shown", **place, manifest=offer.manifest)
    turn.run("add_lines", **place, rows=json.dumps(rows))
    sizes = [int(str(row["size"])) for row in rows if row["size"]]
    turn.run("grow", owner=offer.owner, lines=len(sizes), words=sum(sizes))


def _row(n: int, line: Observation) -> dict[str, object]:
    said = words(line.text)
    return {
        "n": n,
        "start_us": line.span.start_us,
        "end_us": line.span.end_us,
        "size": len(said) + 1 if said else 0,  # the kind is a word too
        "language": legible(line.language),
        "words": vector(line.kind, said) if said else "",
        "doc": json.dumps(line.to_json()),
    }


def _line(doc: str) -> Observation:
    return Observation.from_json(json.loads(doc))


def _video(row: Row) -> Video:
    owner, id, added_at, duration_us, languages, renamed, published, runs = row
    rows = [RunRow(job, recipe, state, json.loads(facts)) for job, recipe, state, facts in runs]
    name = json.loads(renamed) if renamed is not None else None
    return video_of(VideoRow(owner, id, added_at, duration_us, json.loads(languages), name, published), rows)


def _checked(version: int) -> int:
    if version > _VERSION:
        raise WrongHome(
            f"this index was made by a newer rushes (version {version}, this one makes {_VERSION})",
            "Use the newer version everywhere.",
        )
    return version


def _since(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000
