"""The index over SQL: the port's verbs once, for every database with its statements and text search."""

import json
from collections.abc import Collection, Sequence

from rushes.domain.observation import Observation
from rushes.index.changes import Change, IndexedResult, Track
from rushes.index.cursors import decode_cursor, encode_cursor, legible
from rushes.index.port import Backlog, CatalogEntry, Posting, Summary, Video, VideoState, Window
from rushes.index.query import Term
from rushes.index.sql.changes import apply_change, read_lines
from rushes.index.sql.database import SqlDatabase, SqlTransaction
from rushes.index.tokenizer import safe
from rushes.index.videos import LABELLED, video_of

_LONGEST_PAGE = 1000
_LABELS = 20
_AFTER_EVERY_TIME = "~"


class SqlIndex(SqlDatabase):
    """A projection in tables, readable by any process while one follows."""

    def apply(self, *changes: Change) -> None:
        def body(tx: SqlTransaction) -> None:
            for change in changes:
                apply_change(tx, self, change)

        self.write(body)

    def cursor(self, name: str) -> str:
        rows = self.ask("cursor", name=name)
        return str(rows[0][0]) if rows else ""

    def backlog(self, limit: int) -> Backlog:
        jobs = self.ask("backlog_jobs", limit=limit)
        videos = self.ask("backlog_videos")
        return Backlog(tuple((job, number) for job, number in jobs), tuple((owner, id) for owner, id in videos))

    def state(self, owner: str, video: str) -> VideoState:
        results, shown, published = (
            self.ask(name, owner=owner, video=video) for name in ("results", "shown", "published")
        )
        return VideoState(
            tuple((IndexedResult(*row[:-1]), row[-1]) for row in results),
            frozenset((kind, key, manifest) for kind, key, manifest in shown),
            dict(map(tuple, published)),
        )

    def videos(
        self, owner: str, cursor: str = "", limit: int = 100, ids: Collection[str] | None = None
    ) -> tuple[tuple[Video, ...], str]:
        who = legible(owner)
        if ids is not None:
            rows = self.ask("videos_by_id", owner=who, ids=self.array({*map(legible, ids)}))
            return tuple(map(video_of, rows)), ""
        added_at, after = decode_cursor(cursor, 2) or (_AFTER_EVERY_TIME, "")
        limit = max(1, min(limit, _LONGEST_PAGE))
        rows = self.ask("videos", owner=who, added_at=added_at, after=after, limit=limit + 1)
        found = tuple(map(video_of, rows[:limit]))
        return found, encode_cursor((found[-1].added_at, found[-1].id)) if len(rows) > limit else ""

    def catalog(self, owner: str, videos: Collection[str] | None = None) -> tuple[CatalogEntry, ...]:
        if videos is None:
            rows = self.ask("catalog", owner=legible(owner))
        else:
            rows = self.ask("catalog_by_id", owner=legible(owner), ids=self.array(map(legible, videos)))
        return tuple(CatalogEntry(id, safe(json.loads(r) if r else name), path, at) for id, name, path, at, r in rows)

    def lines(self, owner: str, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        return tuple(read_lines(self.ask, legible(owner), legible(video), legible(kind)))

    def tracks(self, owner: str) -> tuple[Track, ...]:
        rows = self.ask("tracks", owner=owner)
        return tuple(Track.from_doc(video, json.loads(doc), bytes(embedding)) for video, doc, embedding in rows)

    def summary(self, owner: str) -> Summary:
        kinds: dict[str, int] = {}
        languages: dict[str, int] = {}
        ((videos, duration_us),) = self.ask("summary", owner=owner)
        for kind, language, count in self.ask("summary_lines", owner=owner):
            kinds[kind] = kinds.get(kind, 0) + count
            if language:
                languages[language] = languages.get(language, 0) + count
        labels: dict[str, dict[str, int]] = {
            k: dict(map(tuple, self.ask("summary_labels", owner=owner, kind=k, limit=_LABELS))) for k in LABELLED
        }
        return Summary(videos, duration_us, kinds, languages, {k: found for k, found in labels.items() if found})

    def count(self, owner: str, term: Term, limit: int) -> int:
        name, values = self._term("count", owner, term)
        return int(self.ask(name, **values, limit=limit)[0][0])

    def find(
        self,
        owner: str,
        term: Term,
        limit: int,
        videos: Collection[str] | None = None,
        windows: Sequence[Window] | None = None,
    ) -> tuple[Posting, ...]:
        if windows is not None:
            values = {"owner": legible(owner), "kinds": self._kinds(term), "first": (*term.words, "")[0]}
            rows = self.ask("find_in_windows", **values, windows=self.windows(windows), limit=limit)
            return tuple({row[0]: Posting(*row) for row in rows}.values())
        within = None if videos is None else self.array(map(legible, videos))
        name, values = self._term("find", owner, term)
        return tuple(Posting(*row) for row in self.ask(name, **values, limit=limit, videos=within))

    def _term(self, verb: str, owner: str, term: Term) -> tuple[str, dict[str, object]]:
        """The statement that looks for a term, and its values."""
        if not term.words:
            return f"{verb}_any", {"owner": legible(owner), "kinds": self._kinds(term)}
        return verb, {"owner": legible(owner), "query": self.text_query(term)}

    def _kinds(self, term: Term) -> object:
        return self.array(term.kinds) if term.kinds else None
