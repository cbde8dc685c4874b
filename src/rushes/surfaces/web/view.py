"""Pages from templates: everything is escaped, undefined names are errors, and all pages share one frame."""

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rushes.domain.errors import RushesError
from rushes.domain.text import clean_text
from rushes.surfaces import words
from rushes.surfaces.http.cookies import cookie_of, drop_cookie, set_cookie
from rushes.surfaces.http.deps import library_of

THEME = "rushes_theme"  # cookie: auto, light or dark
SAID = "rushes_said"  # cookie: what the last action says on the next page, once
_HERE = Path(__file__).parent
FILTERS: Mapping[str, Callable[..., str]] = {
    "timecode": words.timecode,
    "duration": words.duration,
    "lasting": lambda us: words.duration(us / 1e6),
    "size": words.size,
    "range": words.time_range,
    "plural": words.plural,
    "many": words.many,
    "kind": words.kind_name,
    "language": words.language_name,
    "stage": words.stage_name,
    "recipe": words.recipe_name,
    "task": words.task_name,
    "fps": words.frame_rate,
    "container": words.container_name,
    "setting": words.setting_value,
}


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page; `values` are what its template names."""
    said = unquote(cookie_of(request.scope, SAID))[:300]
    around = {"path": request.url.path, "asked": dict(request.query_params), "theme": _theme(request), "said": said}
    html = _templates().get_template(template).render(**around, running=_open_jobs(request), **values)
    page = HTMLResponse(clean_text(html), status, {"Cache-Control": "no-store"})
    if said:
        drop_cookie(request, page, SAID)
    return page


def back(request: Request, said: str = "", to: str = "") -> RedirectResponse:
    """After an action: to the page it came from with its filters, or to another; `said` is shown there once."""
    answer = RedirectResponse(to or _came_from(request), 303)
    if said:
        set_cookie(request, answer, SAID, quote(clean_text(said[:300])), 60)
    return answer


def with_query(path: str, asked: dict[str, str], **changes: object) -> str:
    """An address with some of its questions changed; None or "" leaves one out."""
    left = {k: str(v) for k, v in {**asked, **changes}.items() if v not in (None, "")}
    return f"{path}?{urlencode(left)}" if left else path


@cache
def _templates() -> Environment:
    env = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= FILTERS
    env.globals |= {"static": _static, "with_query": with_query}
    return env


@cache
def _static(name: str) -> str:
    """The address of a static file, with its version: the hash of all of them, because modules import each other."""
    return f"/static/{name}?v={_version()}"


@cache
def _version() -> str:
    files = sorted(p for p in (_HERE / "static").rglob("*") if p.is_file())
    return hashlib.sha256(b"".join(p.read_bytes() for p in files)).hexdigest()[:12]


def _theme(request: Request) -> str:
    theme = cookie_of(request.scope, THEME)
    return theme if theme in {"light", "dark"} else "auto"


def _open_jobs(request: Request) -> str:
    """How many jobs are in progress; a store that is away must not take the error page with it."""
    try:
        return words.many(library_of(request).jobs.open_count())
    except RushesError:
        return ""


def _came_from(request: Request) -> str:
    """The page of ours that the browser names; anything else leads home."""
    came = urlsplit(request.headers.get("referer", ""))
    if came.netloc != request.headers.get("host", "") or not came.path.startswith("/") or came.path.startswith("//"):
        return "/"
    return f"{came.path}?{came.query}" if came.query else came.path
