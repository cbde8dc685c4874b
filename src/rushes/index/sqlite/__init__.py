"""The index in one SQLite file: FTS5 over words that our own tokenizer made."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.index.corrections import corrected
from rushes.index.cursors import cursor_of, legible, place_of
from rushes.index.port import Correction, Offer, Posting, Rate, Run, Shelved, Summary, Track, Video, Window
from rushes.index.query import Term
from rushes.index.search import Searching
from rushes.index.searchable import moments
from rushes.index.sqlite.file import Database
from rushes.index.tokenizer import safe
from rushes.index.tracks import track_doc, track_of
from rushes.index.videos import LABELLED, Row, RunRow, shown_facts, video_of
from rushes.statements import statements

_MOST = 1000
_SQL = statements(Path(__file__).with_name("statements.sql"))
_LABELS = 20
_GONE = ("gone_words", "gone_moments", "gone_lines", "gone_shown", "gone_offers", "gone_names", "gone_extents",
         "drop_tracks", "gone_met", "gone_runs", "gone_video")  # fmt: skip


class SqliteIndex(Searching):
    """A projection in one file, readable by any process while one follows."""

    def __init__(self, path: Path) -> None:
        self._file = Database(path)

    def count(self, owner: str, term: Term, most: int) -> int:
        """As the port says."""
        with self._file.reading() as db:
            name, values = _asked("count", owner, term)
            return int(db.execute(_SQL[name], values | {"most": most}).fetchone()[0])

    def find(self, owner: str, term: Term, most: int, videos: Collection[str] | None = None) -> tuple[Posting, ...]:
        """As the port says."""
        within = None if videos is None else json.dumps(sorted(map(legible, videos)))
        with self._file.reading() as db:
            name, values = _asked("find", owner, term)
            return tuple(Posting(*row) for row in db.execute(_SQL[name], values | {"most": most, "videos": within}))

    def around(self, owner: str, term: Term, windows: Sequence[Window]) -> tuple[Posting, ...]:
        """As the port says."""
        values = {"owner": legible(owner), "kinds": _kinds(term), "first": term.words[0] if term.words else ""}
        with self._file.reading() as db:
            rows = db.execute(_SQL["around"], values | {"windows": json.dumps(windows)})
            return tuple({row[0]: Posting(*row) for row in rows}.values())

    def shelf(self, owner: str, videos: Collection[str] | None = None) -> tuple[Shelved, ...]:
        """As the port says."""
        name = "shelf" if videos is None else "shelf_some"
        asked = {"owner": legible(owner), "videos": json.dumps(sorted(map(legible, videos or ())))}
        with self._file.reading() as db:
            rows = db.execute(_SQL[name], asked).fetchall()
        return tuple(Shelved(id, safe(json.loads(r) if r else name), path, shot) for id, name, path, shot, r in rows)

    def videos(self, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Video, ...], str]:
        """As the port says."""
        added_at, id = place_of(cursor, 2) or ("~", "")  # after every time
        limit = max(1, min(limit, _MOST))
        found = self._videos("videos", owner, {"added_at": added_at, "after": id, "limit": limit + 1})
        more = cursor_of((found[limit - 1].added_at, found[limit - 1].id)) if len(found) > limit else ""
        return found[:limit], more

    def videos_of(self, owner: str, ids: Collection[str]) -> tuple[Video, ...]:
        """As the port says."""
        return self._videos("videos_some", owner, {"ids": json.dumps(sorted({*map(legible, ids)}))})

    def video(self, owner: str, id: str) -> Video | None:
        """As the port says."""
        return next(iter(self.videos_of(owner, [id])), None)

    def lines(self, owner: str, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        """As the port says."""
        with self._file.reading() as db:
            return tuple(_lines(db, owner, video, kind))

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
            labels = {k: dict(db.execute(_SQL["summary_labels"], (owner, k, _LABELS)).fetchall()) for k in LABELLED}
        return Summary(videos, duration_us, kinds, languages, {k: found for k, found in labels.items() if found})

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
            newest = db.execute(_SQL["newest_run"], (run.owner, run.video)).fetchone()
            db.execute(
                _SQL["video_row"], {"owner": run.owner, "video": run.video} | shown_facts(json.loads(newest["facts"]))
            )
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

    def correct(self, owner: str, id: str, correction: Correction | None) -> None:
        """As the port says."""
        with self._file.writing() as db:
            places = [tuple(row) for row in db.execute(_SQL["correction"], (owner, id))]
            db.execute(_SQL["take_back"], (owner, id))
            if correction:
                db.execute(
                    _SQL["correct"], {"owner": owner} | asdict(correction) | {"text": json.dumps(correction.text)}
                )
                places.append((correction.video, correction.kind))
            for video, kind in dict.fromkeys(places):
                _make_moments(db, owner, video, kind)

    def unsettle(self, owner: str, video: str = "") -> None:
        """As the port says."""
        with self._file.writing() as db:
            db.execute(_SQL["unsettle"], (owner, video))

    def keep_tracks(self, owner: str, video: str, tracks: Sequence[Track]) -> None:
        """As the port says."""
        rows = [(owner, video, n, json.dumps(track_doc(t)), t.direction) for n, t in enumerate(tracks)]
        with self._file.writing() as db:
            db.execute(_SQL["drop_tracks"], (owner, video))
            db.executemany(_SQL["add_track"], rows)

    def tracks(self, owner: str) -> tuple[Track, ...]:
        """As the port says."""
        with self._file.reading() as db:
            return tuple(track_of(v, json.loads(doc), data) for v, doc, data in db.execute(_SQL["tracks"], (owner,)))

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
            touched: set[str] = set()
            for kind, key in drop:
                touched.add(kind)
                for statement in ("drop_lines", "drop_shown"):
                    db.execute(_SQL[statement], (owner, video, kind, key))
            for offer, observations in add:
                touched.add(offer.kind)
                db.execute(_SQL["add_shown"], asdict(offer))
                for n, line in enumerate(observations):
                    _add_line(db, offer, n, line)
            for kind in sorted(touched):
                _make_moments(db, owner, video, kind)
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

    def drop(self, owner: str, video: str) -> None:
        """As the port says."""
        with self._file.writing() as db:
            for statement in _GONE:
                db.execute(_SQL[statement], (owner, video))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _videos(self, name: str, owner: str, asked: Mapping[str, JSON]) -> tuple[Video, ...]:
        with self._file.reading() as db:
            rows = db.execute(_SQL[name], {"owner": legible(owner), **asked}).fetchall()
        return tuple(_video(row) for row in rows)


def match_expression(term: Term) -> str:
    """A term in the language of FTS5; every word is quoted, so that none can be taken for syntax."""
    said = f'words : "{" ".join(term.words)}"' + (" *" if term.prefix else "")
    kinds = " OR ".join(f'kind : "{kind}"' for kind in term.kinds)
    return f"(({kinds}) AND {said})" if kinds else said


def _asked(verb: str, owner: str, term: Term) -> tuple[str, dict[str, JSON]]:
    """The statement that finds a term, and what it needs."""
    if not term.words:
        return f"{verb}_any", {"owner": legible(owner), "kinds": _kinds(term)}
    return verb, {"owner": legible(owner), "match": match_expression(term)}


def _kinds(term: Term) -> str | None:
    return json.dumps(term.kinds) if term.kinds else None


def _add_line(db: sqlite3.Connection, offer: Offer, n: int, line: Observation) -> None:
    place = (offer.owner, offer.video, offer.kind, offer.key, n)
    time_and_text = (line.span.start_us, line.span.end_us, line.language, json.dumps(line.to_json()))
    db.execute(_SQL["add_line"], place + time_and_text)


def _lines(db: sqlite3.Connection, owner: str, video: str, kind: str) -> list[Observation]:
    where = (legible(owner), legible(video), legible(kind))
    lines = [Observation.from_json(json.loads(doc)) for (doc,) in db.execute(_SQL["lines"], where)]
    rows = db.execute(_SQL["corrections"], where)
    return corrected(lines, [Correction(a, b, c, d, e, json.loads(text)) for a, b, c, d, e, text in rows])


def _make_moments(db: sqlite3.Connection, owner: str, video: str, kind: str) -> None:
    """Make what is searched of one kind anew."""
    where = (owner, video, kind)
    for statement in ("drop_words", "drop_moments"):
        db.execute(_SQL[statement], where)
    more = {"owner": owner, "video": video}
    db.executemany(_SQL["add_moment"], [asdict(m) | more for m in moments(_lines(db, *where))])
    for statement in ("add_words", "extent"):
        db.execute(_SQL[statement], where)


def _video(row: sqlite3.Row) -> Video:
    owner, id, added_at, duration_us, languages, renamed, published, runs = row
    rows = [RunRow(job, recipe, state, json.loads(facts)) for job, recipe, state, facts in json.loads(runs)]
    name = json.loads(renamed) if renamed else None
    return video_of(Row(owner, id, added_at, duration_us, json.loads(languages), name, json.loads(published)), rows)
