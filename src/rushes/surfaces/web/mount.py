"""Routes of all pages and static files; errors as pages."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Form, Request
from fastapi.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from rushes.surfaces.http.cookies import set_cookie
from rushes.surfaces.web.pages import add, clips, dashboard, failed, fleet, jobs, library, login, people, search, video
from rushes.surfaces.web.view import THEME, back, render

router = APIRouter(include_in_schema=False)
PAGES = (login, dashboard, clips, library, video, search, add, people, failed, jobs, fleet)
_YEAR = "public, max-age=31536000, immutable"
Handler = Callable[[Request, Exception], Awaitable[Response]]


def answer_with_pages(app: FastAPI) -> None:
    """What goes wrong on a page is told on a page; programs go on reading problem documents."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _with_page(handler))


def _with_page(handler: Any) -> Handler:
    async def answer_error(request: Request, error: Exception) -> Response:
        answer: JSONResponse = await handler(request, error)
        return error_page(request, answer) if _is_for_people(request) else answer

    return answer_error


def _is_for_people(request: Request) -> bool:
    ours = not request.url.path.startswith(("/api/", "/files/", "/static/"))
    return ours and "text/html" in request.headers.get("accept", "")


class Static(StaticFiles):
    """Static files: cached without limit under a versioned address, else revalidated each time."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One of them."""
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = _YEAR if scope["query_string"].startswith(b"v=") else "no-cache"
        return answer


@router.post("/theme")
def choose_theme(request: Request, theme: Annotated[Literal["auto", "light", "dark"], Form()]) -> Response:
    """Light, dark, or as the system has it."""
    answer = back(request)
    set_cookie(request, answer, THEME, theme, 365 * 86400)
    return answer


def error_page(request: Request, answer: JSONResponse) -> Response:
    """A problem as people read it: what happened, what to do, and where to go on."""
    said = json.loads(bytes(answer.body))
    if said["detail"] == "Not Found":
        said |= {"detail": "page not found", "hint": "Check the address."}
    page = render(request, "problem.html", answer.status_code, problem=said)
    for name in ("www-authenticate", "retry-after", "allow"):
        if name in answer.headers:
            page.headers[name] = answer.headers[name]
    return page


ROUTES: list[BaseRoute] = [
    Mount("/static", Static(directory=Path(__file__).parent / "static"), name="static"),
    *router.routes,
    *(route for page in PAGES for route in page.router.routes),
]
