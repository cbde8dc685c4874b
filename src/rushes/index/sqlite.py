"""The index in one SQLite file: FTS5 over words that our own tokenizer made."""

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.index.hits import hit
from rushes.index.places import cursor_of, legible, place_of
from rushes.index.port import Found, Hit, Offer, Rate, Run, Summary, Video
from rushes.index.query import Clause, Query, Term, parse
from rushes.index.sqlite_file import Database, statements
from rushes.index.videos import Row, RunRow, video_of
from rushes.index.words import words

_MOST = 1000
_SQL = statements()
_PLACE = ("score", "at_video", "start_us", "end_us", "at_kind", "at_key", "at_n")


class SqliteIndex:
    """A projection in one file, readable by any process while one follows."""

    def __init__(self, path: Path) -> None:
        self._file = Database(path)

    def search(self, owner: str, query: str, limit: int = 20, cursor: str = "", video: str = "") -> Found:
        """As the port says."""
        begun = time.perf_counter()
        asked = parse(query)
        if not asked.clauses:
            return Found(note=asked.note, took_ms=_since(begun))
        where = {"match": match_expression(asked), "owner": legible(owner), "video": legible(video)}
        with self._file.reading() as db:
            total, videos = db.execute(_SQL["count_hits"], where).fetchone()
            limit = max(1, min(limit, _MOST))
            rows = db.execute(_SQL["search"], where | _after(cursor) | {"limit": limit + 1}).fetchall()
            hits = tuple(_hits(db, owner, asked, rows[:limit]))
        more = cursor_of(tuple(rows[limit - 1])[:7]) if len(rows) > limit else ""
        return Found(hits, total, videos, more, asked.note, _since(begun))

    def videos(self, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Video, ...], str]:
        """As the port says."""
        added_at, id = place_of(cursor, 2) or ("", "")
        limit = max(1, min(limit, _MOST))
        with self._file.reading() as db:
            rows = db.execute(_SQL["video_list"], (legible(owner), added_at, id, limit + 1)).fetchall()
            found = tuple(_video(db, row) for row in rows[:limit])
        more = cursor_of((found[-1].added_at, found[-1].id)) if len(rows) > len(found) else ""
        return found, more

    def video(self, owner: str, id: str) -> Video | None:
        """As the port says."""
        with self._file.reading() as db:
            row = db.execute(_SQL["video"], (legible(owner), legible(id))).fetchone()
            return _video(db, row) if row else None

    def lines(self, owner: str, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        """As the port says."""
        with self._file.reading() as db:
            rows = db.execute(_SQL["lines"], (legible(owner), legible(video), kind)).fetchall()
        return tuple(Observation.from_json(json.loads(doc)) for (doc,) in rows)

    def rates(self, stage: str, machine: str, limit: int = 500) -> tuple[Rate, ...]:
        """As the port says."""
        with self._file.reading() as db:
            return tuple(Rate(*row) for row in db.execute(_SQL["rates"], (stage, machine, limit)))

    def summary(self, owner: str) -> Summary:
        """As the port says."""
        kinds: dict[str, int] = {}
        languages: dict[str, int] = {}
        with self._file.reading() as db:
            videos, duration_us = db.execute(_SQL["summary"], (owner,)).fetchone()
            for kind, language, count in db.execute(_SQL["summary_lines"], (owner,)):
                kinds[kind] = kinds.get(kind, 0) + count
                if language:
                    languages[language] = languages.get(language, 0) + count
        return Summary(videos, duration_us, kinds, languages)

    def alone(self, patience: float = 2.0) -> AbstractContextManager[bool]:
        """As the port says."""
        return self._file.alone(patience)

    def reset(self) -> None:
        """As the port says."""
        self._file.reset()

    def cursor(self, name: str) -> str:
        """As the port says."""
        with self._file.reading() as db:
            row = db.execute(_SQL["cursor"], (name,)).fetchone()
        return row[0] if row else ""

    def queue(self, name: str, cursor: str, jobs: Iterable[str] = ()) -> None:
        """As the port says."""
        with self._file.writing() as db:
            db.executemany(_SQL["queue"], [(job,) for job in jobs])
            db.execute(_SQL["keep_cursor"], (name, cursor))

    def queued(self, limit: int) -> tuple[tuple[str, int], ...]:
        """As the port says."""
        with self._file.reading() as db:
            return tuple((job, number) for job, number in db.execute(_SQL["queued"], (limit,)))

    def met(self, job: str, number: int) -> None:
        """As the port says."""
        with self._file.writing() as db:
            db.execute(_SQL["met"], (job, number))

    def take_in(self, run: Run, offers: Sequence[Offer], names: Mapping[str, str], rates: Sequence[Rate]) -> None:
        """As the port says."""
        with self._file.writing() as db:
            db.execute(_SQL["run"], asdict(run) | {"facts": json.dumps(run.facts)})
            newest = db.execute(_SQL["runs"], (run.owner, run.video)).fetchone()
            length = int(json.loads(newest["facts"]).get("duration_us") or 0)
            db.execute(_SQL["video_row"], {"owner": run.owner, "video": run.video, "duration_us": length})
            db.executemany(_SQL["offer"], [asdict(offer) for offer in offers])
            db.executemany(_SQL["publish"], [(run.owner, run.video, name, key) for name, key in names.items()])
            db.executemany(_SQL["rate"], [asdict(rate) for rate in rates])

    def learn(self, rates: Sequence[Rate]) -> None:
        """As the port says."""
        with self._file.writing() as db:
            db.executemany(_SQL["rate"], [asdict(rate) for rate in rates])

    def rename(self, owner: str, video: str, name: str | None) -> None:
        """As the port says."""
        with self._file.writing() as db:
            if name is None:
                db.execute(_SQL["unname"], (owner, video))
            else:
                db.execute(_SQL["rename"], (owner, video, json.dumps(name)))

    def unsettled(self) -> tuple[tuple[str, str], ...]:
        """As the port says."""
        with self._file.reading() as db:
            return tuple((owner, video) for owner, video in db.execute(_SQL["unsettled"]))

    def offers(self, owner: str, video: str) -> tuple[tuple[Offer, str], ...]:
        """As the port says."""
        with self._file.reading() as db:
            return tuple((Offer(*row[:-1]), row[-1]) for row in map(tuple, db.execute(_SQL["offers"], (owner, video))))

    def shown(self, owner: str, video: str) -> frozenset[tuple[str, str, str]]:
        """As the port says."""
        with self._file.reading() as db:
            return frozenset((kind, key, sha) for kind, key, sha in db.execute(_SQL["shown"], (owner, video)))

    def show(
        self,
        owner: str,
        video: str,
        add: Sequence[tuple[Offer, Sequence[Observation]]],
        drop: Iterable[tuple[str, str]],
    ) -> None:
        """As the port says."""
        with self._file.writing() as db:
            for kind, key in drop:
                for statement in ("drop_words", "drop_lines", "drop_shown"):
                    db.execute(_SQL[statement], (owner, video, kind, key))
            for offer, observations in add:
                db.execute(_SQL["add_shown"], asdict(offer))
                for n, line in enumerate(observations):
                    _add_line(db, offer, n, line)
            db.execute(_SQL["settle"], (owner, video))

    def keys(self, owner: str = "") -> tuple[tuple[str, str], ...]:
        """As the port says."""
        with self._file.reading() as db:
            return tuple((whose, key) for whose, key in db.execute(_SQL["keys"], (owner,)))

    def forget(self, owner: str, keys: Iterable[str]) -> None:
        """As the port says."""
        with self._file.writing() as db:
            for key in keys:
                for statement in ("unsettle_key", "forget_offer", "forget_name"):
                    db.execute(_SQL[statement], (owner, key))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def match_expression(query: Query) -> str:
    """A query in the language of FTS5; every word is quoted, so that none can be taken for syntax."""
    return " OR ".join(_clause(clause) for clause in query.clauses)


def _clause(clause: Clause) -> str:
    must = " AND ".join(_term(term) for term in clause.must)
    never = " OR ".join(_term(term) for term in clause.never)
    return f"(({must}) NOT ({never}))" if never else f"({must})"


def _term(term: Term) -> str:
    said = f'words : "{" ".join(term.words)}"' + (" *" if term.prefix else "")
    kinds = " OR ".join(f'kind : "{kind}"' for kind in term.kinds)
    return f"(({kinds}) AND {said})" if kinds else said


def _add_line(db: sqlite3.Connection, offer: Offer, n: int, line: Observation) -> None:
    place = (offer.owner, offer.video, offer.kind, offer.key, n)
    time_and_text = (line.span.start_us, line.span.end_us, line.language, json.dumps(line.to_json()))
    row = db.execute(_SQL["add_line"], place + time_and_text).lastrowid
    said = " ".join(words(line.text))
    if said:
        db.execute(_SQL["add_words"], (row, line.kind, said))


def _hits(db: sqlite3.Connection, owner: str, query: Query, rows: Sequence[sqlite3.Row]) -> Iterable[Hit]:
    names: dict[str, str] = {}
    for row in rows:
        video = row["video"]
        if video not in names:
            names[video] = _video(db, db.execute(_SQL["video"], (owner, video)).fetchone()).name
        yield hit(query, Observation.from_json(json.loads(row["doc"])), video, names[video], -row["score"])


def _video(db: sqlite3.Connection, row: sqlite3.Row) -> Video:
    who = (row["owner"], row["id"])
    rows = db.execute(_SQL["runs"], who).fetchall()
    runs = [RunRow(r["job"], r["recipe"], r["state"], json.loads(r["facts"])) for r in rows]
    renamed = db.execute(_SQL["renamed"], who).fetchone()
    published = [name for (name,) in db.execute(_SQL["published"], who)]
    name = json.loads(renamed[0]) if renamed else None
    languages = json.loads(row["languages"])
    return video_of(Row(*who, row["added_at"], row["duration_us"], languages, name, published), runs)


def _after(cursor: str) -> dict[str, JSON]:
    place = place_of(cursor, len(_PLACE))
    return dict(zip(_PLACE, place or [None] * len(_PLACE), strict=True)) | {"after": 1 if place else None}


def _since(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000
