"""How each change is written into the tables of an SQL index."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index import changes
from rushes.index.changes import Change, Correction, IndexedResult
from rushes.index.corrections import corrected
from rushes.index.cursors import legible
from rushes.index.passages import passages
from rushes.index.query import NAME
from rushes.index.sql.database import Rows, SqlDatabase, SqlTransaction
from rushes.index.videos import shown_facts

Ask = Callable[..., Rows]

_TABLES = ("passages", "lines", "shown", "results", "published", "extents", "tracks", "jobs", "runs", "video")


def apply_change(tx: SqlTransaction, db: SqlDatabase, change: Change) -> None:  # noqa: C901, PLR0912 - one case a change
    """Write one change."""
    match change:
        case changes.Reset():
            tx.reset()
        case changes.CursorMove(name, cursor, jobs):
            tx.run("queue_jobs", jobs=db.array(jobs))
            tx.run("keep_cursor", name=name, value=cursor)
        case changes.JobRead(job, number):
            tx.run("job_read", job=job, number=number)
        case changes.RunUpdate():
            _update_run(tx, change)
            _make_name_passage(tx, db, change.run.owner, change.run.video)
        case changes.VideoRename(owner, video, name):
            tx.run("unname" if name is None else "rename", owner=owner, video=video, name=json.dumps(name))
            _make_name_passage(tx, db, owner, video)
        case changes.CorrectionUpdate():
            _correct(tx, db, change)
        case changes.Reselection(owner, video):
            tx.run("reselect", owner=owner, video=video)
        case changes.TrackUpdate():
            _replace_tracks(tx, change)
        case changes.SelectionUpdate():
            _select(tx, db, change)
        case changes.ResultRemoval(owner, keys):
            for statement in ("reselect_videos_of", "remove_results", "remove_published"):
                tx.run(statement, owner=owner, keys=db.array(keys))
        case changes.VideoRemoval(owner, video):
            for table in _TABLES:
                tx.run(f"drop_{table}_of_video", owner=owner, video=video)


def read_lines(ask: Ask, owner: str, video: str, kind: str) -> list[Observation]:
    """The observations of one kind in order of time, as people corrected them."""
    where = {"owner": owner, "video": video, "kind": kind}
    found = [Observation.from_json(json.loads(doc)) for (doc,) in ask("lines", **where)]
    rows = ask("corrections", **where)
    return corrected(found, [Correction(a, b, c, d, e, json.loads(text)) for a, b, c, d, e, text in rows])


def _update_run(tx: SqlTransaction, change: changes.RunUpdate) -> None:
    run = change.run
    of = {"owner": run.owner, "video": run.video}
    tx.run("run", **{**asdict(run), "facts": json.dumps(run.facts)})
    ((newest,),) = tx.all("newest_facts", **of)
    tx.run("video", **of, **shown_facts(json.loads(newest)))
    tx.many("add_result", [asdict(result) for result in change.results])
    tx.many("publish", [{**of, "name": name, "key": key} for name, key in (change.published or {}).items()])


def _correct(tx: SqlTransaction, db: SqlDatabase, change: changes.CorrectionUpdate) -> None:
    touched = [(video, kind) for video, kind in tx.all("remove_correction", owner=change.owner, id=change.id)]
    if new := change.correction:
        tx.run("add_correction", owner=change.owner, **{**asdict(new), "text": json.dumps(new.text)})
        touched.append((new.video, new.kind))
    for video, kind in dict.fromkeys(touched):
        _make_passages(tx, db, change.owner, video, kind)


def _replace_tracks(tx: SqlTransaction, change: changes.TrackUpdate) -> None:
    of = {"owner": change.owner, "video": change.video}
    tx.run("drop_tracks_of_video", **of)
    for n, track in enumerate(change.tracks):
        tx.run("add_track", **of, n=n, doc=json.dumps(track.to_doc()), embedding=track.embedding)


def _select(tx: SqlTransaction, db: SqlDatabase, change: changes.SelectionUpdate) -> None:
    touched: set[str] = set()
    of = {"owner": change.owner, "video": change.video}
    for kind, key in change.drop:
        touched.add(kind)
        for statement in ("drop_lines", "hide"):
            tx.run(statement, **of, kind=kind, key=key)
    for result, lines in change.add:
        touched.add(result.kind)
        tx.run("show", **of, kind=result.kind, key=result.key, manifest=result.manifest)
        tx.many("add_line", [_line_row(result, n, line) for n, line in enumerate(lines)])
    for kind in sorted(touched):
        _make_passages(tx, db, change.owner, change.video, kind)
    tx.run("selected", **of)


def _line_row(result: IndexedResult, n: int, line: Observation) -> dict[str, object]:
    of = {"owner": result.owner, "video": result.video, "kind": result.kind, "key": result.key, "n": n}
    span = {"start_us": line.span.start_us, "end_us": line.span.end_us}
    return {**of, **span, "language": legible(line.language), "doc": json.dumps(line.to_json())}


def _make_passages(tx: SqlTransaction, db: SqlDatabase, owner: str, video: str, kind: str) -> None:
    """Make again what is searched of one kind."""
    where = {"owner": owner, "video": video, "kind": kind}
    _replace_passages(tx, db, where, read_lines(tx.all, **where))


def _make_name_passage(tx: SqlTransaction, db: SqlDatabase, owner: str, video: str) -> None:
    """A video is found by its name: a passage as long as the video."""
    rows = tx.all("video_name", owner=owner, video=video)
    _replace_passages(tx, db, {"owner": owner, "video": video, "kind": NAME}, [_name_line(*row) for row in rows])


def _name_line(name: str, renamed: str | None, duration_us: int) -> Observation:
    text = json.loads(renamed) if renamed else name
    return Observation(NAME, Span(0, max(duration_us, 1), Fraction(1, 1_000_000)), text, 1.0)


def _replace_passages(
    tx: SqlTransaction, db: SqlDatabase, where: Mapping[str, str], lines: Sequence[Observation]
) -> None:
    made = [{**db.passage_row(passage), **where} for passage in passages(lines)]
    tx.run("drop_passages", **where)
    tx.many("add_passage", made)
    tx.run("extent", **where)
