"""The index in PostgreSQL: text search over words that our own tokenizer made."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from rushes.domain.errors import WrongHome
from rushes.domain.observation import Observation
from rushes.index.corrections import corrected
from rushes.index.cursors import cursor_of, legible, place_of
from rushes.index.port import Correction, Offer, Posting, Rate, Run, Shelved, Summary, Track, Video, Window
from rushes.index.postgres.tsquery import expression, vector
from rushes.index.query import Term
from rushes.index.search import Searching
from rushes.index.searchable import VERSION as MOMENTS
from rushes.index.searchable import moments
from rushes.index.tokenizer import VERSION as WORDS
from rushes.index.tokenizer import safe
from rushes.index.tracks import track_doc, track_of
from rushes.index.videos import LABELLED, RunRow, shown_facts, video_of
from rushes.index.videos import Row as VideoRow
from rushes.postgres.schema import scripted
from rushes.postgres.store import Postgres, Row, Transaction
from rushes.statements import statements

T = TypeVar("T")
SCHEMA = 3
_VERSION = SCHEMA * 10_000 + MOMENTS * 100 + WORDS
_MOST = 1000
_ALONE = 7310030
_HERE = Path(__file__)
_SQL = statements(_HERE.with_name("statements.sql"))
_LABELS = 20
_TABLES = (
    *("cursor", "job", "run", "video", "renamed", "published", "offer", "shown", "line", "correction", "moment"),
    *("extent", "track", "rate"),
)


class PostgresIndex(Searching):
    """A projection in tables, readable by any process while one follows."""

    def __init__(self, db: Postgres) -> None:
        self._db = db
        if self._version() != _VERSION:
            db.write("index", _SQL, self._make)

    def count(self, owner: str, term: Term, most: int) -> int:
        """As the port says."""
        name, values = _asked("count", owner, term)
        return int(self._ask(name, **values, most=most)[0][0])

    def find(self, owner: str, term: Term, most: int, videos: Collection[str] | None = None) -> tuple[Posting, ...]:
        """As the port says."""
        name, values = _asked("find", owner, term)
        within = None if videos is None else sorted(map(legible, videos))
        return tuple(Posting(*row) for row in self._ask(name, **values, most=most, videos=within))

    def around(self, owner: str, term: Term, windows: Sequence[Window]) -> tuple[Posting, ...]:
        """As the port says."""
        places = json.dumps([{"v": video, "s": start, "e": end} for video, start, end in windows])
        what = {"owner": legible(owner), "kinds": _kinds(term), "first": term.words[0] if term.words else ""}
        return tuple(Posting(*row) for row in self._ask("around", **what, windows=places))

    def shelf(self, owner: str, videos: Collection[str] | None = None) -> tuple[Shelved, ...]:
        """As the port says."""
        some = {} if videos is None else {"videos": sorted(map(legible, videos))}
        rows = self._ask("shelf_some" if some else "shelf", owner=legible(owner), **some)
        return tuple(Shelved(id, safe(json.loads(r) if r else name), path, shot) for id, name, path, shot, r in rows)

    def videos(self, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Video, ...], str]:
        """As the port says."""
        added_at, id = place_of(cursor, 2) or ("", "")
        limit = max(1, min(limit, _MOST))
        found = self._videos(owner, None, limit + 1, added_at, id)
        more = cursor_of((found[limit - 1].added_at, found[limit - 1].id)) if len(found) > limit else ""
        return tuple(found[:limit]), more

    def videos_of(self, owner: str, ids: Collection[str]) -> tuple[Video, ...]:
        """As the port says."""
        return tuple(self._videos(owner, [*map(legible, ids)], len(ids)))

    def video(self, owner: str, id: str) -> Video | None:
        """As the port says."""
        return next(iter(self.videos_of(owner, [id])), None)

    def lines(self, owner: str, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        """As the port says."""
        return tuple(_lines(self._ask, legible(owner), legible(video), legible(kind)))

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
        labels: dict[str, dict[str, int]] = {
            kind: dict(self._ask("summary_labels", owner=owner, kind=kind, limit=_LABELS)) for kind in LABELLED
        }
        return Summary(videos, duration_us, kinds, languages, {k: found for k, found in labels.items() if found})

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

        def keep(turn: Transaction) -> None:
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

        def keep(turn: Transaction) -> None:
            turn.run("run", **{**asdict(run), "facts": json.dumps(run.facts)})
            ((newest,),) = turn.all("newest_facts", **who)
            turn.run("video_row", **who, **shown_facts(json.loads(newest)))
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

    def correct(self, owner: str, id: str, correction: Correction | None) -> None:
        """As the port says."""

        def keep(turn: Transaction) -> None:
            places = [(video, kind) for video, kind in turn.all("take_back", owner=owner, id=id)]
            if correction:
                doc = asdict(correction) | {"text": json.dumps(correction.text)}
                turn.run("correct", owner=owner, **doc)
                places.append((correction.video, correction.kind))
            for video, kind in dict.fromkeys(places):
                _make_moments(turn, owner, video, kind)

        self._write(keep)

    def unsettle(self, owner: str, video: str = "") -> None:
        """As the port says."""
        self._write(lambda turn: turn.run("unsettle", owner=owner, video=video))

    def keep_tracks(self, owner: str, video: str, tracks: Sequence[Track]) -> None:
        """As the port says."""

        def keep(turn: Transaction) -> None:
            turn.run("drop_tracks", owner=owner, video=video)
            for n, t in enumerate(tracks):
                doc = json.dumps(track_doc(t))
                turn.run("add_track", owner=owner, video=video, n=n, doc=doc, direction=t.direction)

        self._write(keep)

    def tracks(self, owner: str) -> tuple[Track, ...]:
        """As the port says."""
        rows = self._ask("tracks", owner=owner)
        return tuple(track_of(video, json.loads(doc), bytes(direction)) for video, doc, direction in rows)

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

        def keep(turn: Transaction) -> None:
            touched: set[str] = set()
            for kind, key in drop:
                touched.add(kind)
                turn.run("drop", owner=owner, video=video, kind=kind, key=key)
            for offer, observations in add:
                touched.add(offer.kind)
                _add(turn, offer, [_row(n, line) for n, line in enumerate(observations)])
            for kind in sorted(touched):
                _make_moments(turn, owner, video, kind)
            turn.run("settle", owner=owner, video=video)

        self._write(keep)

    def keys(self, owner: str = "") -> tuple[tuple[str, str], ...]:
        """As the port says."""
        return tuple((whose, key) for whose, key in self._ask("keys", owner=owner))

    def forget(self, owner: str, keys: Iterable[str]) -> None:
        """As the port says."""
        these = list(keys)

        def keep(turn: Transaction) -> None:
            for statement in ("unsettle_keys", "forget_offers", "forget_names"):
                turn.run(statement, owner=owner, keys=these)

        self._write(keep)

    def drop(self, owner: str, video: str) -> None:
        """As the port says."""
        self._write(lambda turn: turn.run("gone", owner=owner, video=video))

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

    def _make(self, turn: Transaction) -> None:
        """Drop whatever is there and make the tables, unless another process just did."""
        turn.all("alone")
        there = turn.column("there")[0] and turn.column("version")
        if not there or _checked(there[0]) != _VERSION:
            turn.run_text("DROP SCHEMA IF EXISTS rushes_index CASCADE")
            scripted(turn, _HERE.with_name("schema.sql"))
            turn.run("keep_version", version=_VERSION)

    def _videos(
        self, owner: str, ids: list[str] | None, limit: int, added_at: str = "", after: str = ""
    ) -> list[Video]:
        rows = self._ask("videos", owner=legible(owner), ids=ids, limit=limit, added_at=added_at, after=after)
        return [_video(row) for row in rows]

    def _ask(self, name: str, /, **values: object) -> list[Row]:
        return self._db.ask(_SQL[name], values)

    def _write(self, body: Callable[[Transaction], object]) -> None:
        self._db.write("index", _SQL, body)


def _asked(verb: str, owner: str, term: Term) -> tuple[str, dict[str, object]]:
    """The statement that finds a term, and what it needs."""
    if not term.words:
        return f"{verb}_any", {"owner": legible(owner), "kinds": _kinds(term)}
    return verb, {"owner": legible(owner), "query": expression(term)}


def _kinds(term: Term) -> list[str] | None:
    return list(term.kinds) or None


def _add(turn: Transaction, offer: Offer, rows: list[dict[str, object]]) -> None:
    place = {"owner": offer.owner, "video": offer.video, "kind": offer.kind, "key": offer.key}
    turn.run("add_shown", **place, manifest=offer.manifest)
    turn.run("add_lines", **place, rows=json.dumps(rows))


def _row(n: int, line: Observation) -> dict[str, object]:
    return {
        "n": n,
        "start_us": line.span.start_us,
        "end_us": line.span.end_us,
        "language": legible(line.language),
        "doc": json.dumps(line.to_json()),
    }


def _make_moments(turn: Transaction, owner: str, video: str, kind: str) -> None:
    """Make what is searched of one kind anew."""
    where = {"owner": owner, "video": video, "kind": kind}
    made = [asdict(m) | {"found": vector(m.kind, m.words.split(" "))} for m in moments(_lines(turn.all, **where))]
    turn.run("drop_moments", **where)
    turn.run("add_moments", **where, rows=json.dumps(made))
    turn.run("extent", **where)


def _lines(ask: Callable[..., list[Row]], owner: str, video: str, kind: str) -> list[Observation]:
    where = {"owner": owner, "video": video, "kind": kind}
    said = [Correction(a, b, c, d, e, json.loads(text)) for a, b, c, d, e, text in ask("corrections", **where)]
    return corrected([_line(doc) for (doc,) in ask("lines", **where)], said)


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
