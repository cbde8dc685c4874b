"""Every page of the browser's side as routes: one module per page, the shared static files, and errors as pages."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from rushes.surfaces.web import base

PAGES = ("dashboard", "library", "video", "search", "add", "people", "failed", "jobs", "job", "workers",
         "settings", "entry")  # fmt: skip
Handler = Callable[[Request, Exception], Awaitable[Response]]


def _routes() -> list[BaseRoute]:
    here = __name__.rpartition(".")[0]
    found = [import_module(f"{here}.{name}") for name in PAGES if find_spec(f"{here}.{name}")]
    return [*base.routes, *(route for page in found for route in page.router.routes)]


routes: list[BaseRoute] = _routes()


def dress(app: FastAPI) -> None:
    """What goes wrong on a page is told on a page; programs go on reading problem documents."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _dressed(handler))


def _dressed(handler: Any) -> Handler:
    async def told(request: Request, error: Exception) -> Response:
        answer: JSONResponse = await handler(request, error)
        return base.error_page(request, answer) if _by_a_person(request) else answer

    return told


def _by_a_person(request: Request) -> bool:
    ours = not request.url.path.startswith(("/api/", "/files/", "/static/"))
    return ours and "text/html" in request.headers.get("accept", "")
