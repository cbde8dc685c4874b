"""Failed tasks, grouped by cause: why, whether a retry can work, what to do; retry or dismiss them together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from rushes.domain.task import Task
from rushes.library import Library
from rushes.library.jobs import Cause, FailureFilter, FailureGroup
from rushes.surfaces.api.fleet import GLANCE
from rushes.surfaces.api.jobs import FAILED
from rushes.surfaces.http.audit import note_target
from rushes.surfaces.http.deps import LibraryDep
from rushes.surfaces.http.schemas import seal, unseal
from rushes.surfaces.web.view import back, render, with_query
from rushes.surfaces.words import active_jobs, plural, stage_name

router = APIRouter(include_in_schema=False)
NAMED = 3  # jobs that are named of a cause
CAUSES = 5  # told of a class
AT_ONCE = 1000  # dead letters that one request acts upon
HOPS = 15  # requests that one click may cause: browsers follow 20 and no further
Name = Annotated[str, Query(max_length=100)]
Cursor = Annotated[str, Query(max_length=500)]
TITLES = {
    "BadMedia": "The file is not a readable video",
    "SourceMissing": "The original is missing",
    "SourceChanged": "The original has changed since it was added",
    "ModelMissing": "A model is missing on this machine",
    "SlotDied": "The process crashed",
    "SlotTimedOut": "The time limit was exceeded",
    "SlotTooBig": "The memory limit was exceeded",
    "KillsItsWorker": "The task crashes its worker",
    "DamagedBlob": "A stored file is damaged",
    "StoreAway": "A store does not respond",
    "StoreMissing": "The bucket or database does not exist",
    "StoreRefuses": "A store refuses the credentials",
}


@router.get("/jobs/failed")
def moved() -> Response:
    """Where else people look for it."""
    return RedirectResponse("/failed", 307)


@router.get("/failed")
def show_failed(
    request: Request, library: LibraryDep, kind: Name = "", step: Name = "", cursor: Cursor = ""
) -> Response:
    """The groups; the filters stay in the address."""
    page = library.jobs.failed.page(unseal(request, cursor, FAILED))
    every = page.groups
    some = _chosen(every, (kind,) if kind else (), step)
    groups = [_group(page.names, g) for g in some]
    return render(
        request,
        "failed.html",
        groups=groups,
        kinds=[(g.kind, f"{TITLES.get(g.kind, g.kind)}: {len(g.tasks)}") for g in every],
        steps=[(stage, stage_name(stage)) for stage in sorted({t.stage for g in every for t in g.tasks})],
        tasks=sum(len(g.tasks) for g in some),
        jobs=len({t.job for g in some for t in g.tasks}),
        all_tasks=sum(len(g.tasks) for g in every),
        next=seal(request, page.cursor, FAILED),
        paged=bool(page.cursor or cursor),
        counts=library.jobs.counts(GLANCE),
        rates=[(stage_name(rate.stage), rate) for rate in library.jobs.stage_rates()],
        workers=active_jobs(library.jobs.workers()).workers,
    )


@router.post("/failed/{do}")
def act(
    request: Request,
    library: LibraryDep,
    do: Literal["retry", "discard"],
    kind: Annotated[list[str] | None, Form(max_length=100)] = None,
    only: Annotated[str, Form(max_length=100)] = "",
    step: Annotated[str, Form(max_length=100)] = "",
    cursor: Cursor = "",
    done: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    hop: Annotated[int, Query(ge=0, le=HOPS)] = 0,
) -> Response:
    """Try the chosen classes (or only one) again, or put them away; back to the page with its filters.

    So many at once, then the browser is sent on with the same form to where the next ones begin.
    """
    kinds = frozenset([only] if only else kind or [])
    note_target(request, f"{do} {', '.join(sorted(kinds))} {step}".strip())
    if not kinds:
        return back(request, "Nothing was selected.")
    do_it = library.jobs.failed.retry if do == "retry" else library.jobs.failed.dismiss
    acted = do_it(FailureFilter(kinds, step), unseal(request, cursor, FAILED), AT_ONCE)
    done += len(acted.rows)
    if acted.cursor and hop < HOPS:
        rest = with_query(request.url.path, {}, cursor=seal(request, acted.cursor, FAILED), done=done, hop=hop + 1)
        return RedirectResponse(rest, 307)
    return back(request, _said(library, do, done, more=bool(acted.cursor)))


def _said(library: Library, do: str, count: int, *, more: bool) -> str:
    if not count:
        return "Nothing was selected."
    rest = " There are more: select them again." if more else ""
    if do == "retry":
        alive = active_jobs(library.jobs.workers()).workers
        alone = "No worker is running. Start one: rushes worker, or rushes serve --workers 1."
        return f"{plural(count, 'task')} will be retried. {'A worker takes them soon.' if alive else alone}{rest}"
    return f"{plural(count, 'task')} dismissed. Finished results are kept.{rest}"


def _chosen(groups: Sequence[FailureGroup], kinds: Sequence[str], step: str) -> tuple[FailureGroup, ...]:
    """The groups of these classes (none: all), with only the tasks of one step ("": all)."""
    some = [g for g in groups if not kinds or g.kind in kinds]
    if not step:
        return tuple(some)
    narrowed = [FailureGroup(g.kind, _of_step(g.causes, step)) for g in some]
    return tuple(g for g in narrowed if g.causes)


def _of_step(causes: Sequence[Cause], step: str) -> tuple[Cause, ...]:
    some = [replace(c, tasks=tuple(t for t in c.tasks if t.stage == step)) for c in causes]
    return tuple(c for c in some if c.tasks)


def _group(names: Mapping[str, str], group: FailureGroup) -> dict[str, Any]:
    """Dead letters of one class; `more` causes are not told."""
    causes = [_cause(names, c) for c in group.causes[:CAUSES]]
    title, hopeless = TITLES.get(group.kind, group.kind), all("will not" in c.verdict for c in group.causes)
    told = {"causes": causes, "more": len(group.causes) - len(causes)}
    return {"kind": group.kind, "title": title, "count": len(group.tasks), "hopeless": hopeless, **told}


def _cause(names: Mapping[str, str], said: Cause) -> dict[str, Any]:
    """Dead letters that say the same, where they are (job, its name, step and chunk) and when the last one died."""
    one_each = list({t.job: t for t in said.tasks}.values())[:NAMED]
    where = [(t.job, names[t.job], _place(t)) for t in one_each]
    return {"said": said, "where": where, "last": max(t.finished_at or "" for t in said.tasks)}


def _place(task: Task) -> str:
    return stage_name(task.stage) if task.chunk is None else f"{stage_name(task.stage)}, chunk {task.chunk}"
