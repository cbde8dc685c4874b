"""What all pages stand on: static files with cache headers, the theme, and a page for whatever went wrong."""

import json
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from rushes.surfaces.web.view import THEME, back, render

router = APIRouter(include_in_schema=False)
_YEAR = "public, max-age=31536000, immutable"


class Static(StaticFiles):
    """Files that come with the program: kept for ever under a versioned address, else asked for again each time."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One of them."""
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = _YEAR if scope["query_string"].startswith(b"v=") else "no-cache"
        return answer


@router.post("/theme")
def choose_theme(request: Request, theme: Annotated[Literal["auto", "light", "dark"], Form()]) -> Response:
    """Light, dark, or as the system has it."""
    answer = back(request)
    answer.set_cookie(THEME, theme, 365 * 86400, httponly=True, samesite="lax")
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


routes: list[BaseRoute] = [
    Mount("/static", Static(directory=Path(__file__).parent / "static"), name="static"),
    *router.routes,
]
