"""Every page of the browser's side as routes, with the shared static files; and errors as pages."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from rushes.surfaces.web import base
from rushes.surfaces.web.pages import (
    add,
    dashboard,
    failed,
    jobs,
    library,
    login,
    people,
    search,
    settings,
    video,
    workers,
)

PAGES = (login, dashboard, library, video, search, add, people, failed, jobs, workers, settings)
ROUTES: list[BaseRoute] = [*base.routes, *(route for page in PAGES for route in page.router.routes)]
Handler = Callable[[Request, Exception], Awaitable[Response]]


def answer_with_pages(app: FastAPI) -> None:
    """What goes wrong on a page is told on a page; programs go on reading problem documents."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _with_page(handler))


def _with_page(handler: Any) -> Handler:
    async def answer_error(request: Request, error: Exception) -> Response:
        answer: JSONResponse = await handler(request, error)
        return base.error_page(request, answer) if _is_for_people(request) else answer

    return answer_error


def _is_for_people(request: Request) -> bool:
    ours = not request.url.path.startswith(("/api/", "/files/", "/static/"))
    return ours and "text/html" in request.headers.get("accept", "")
