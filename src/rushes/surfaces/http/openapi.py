"""What the OpenAPI description says beyond the routes: errors, authentication, and HEAD for every GET."""

import re
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from rushes.surfaces.http.problems import TYPE

OWN = re.compile(r"^/files/|/uploads/|/frames/|/(original|events)$")
TEXT = {"type": "string"}
PROBLEM = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457: what went wrong, and what to do about it.",
    "required": ["type", "title", "status", "detail", "code", "hint", "retryable"],
    "properties": {
        **dict.fromkeys(("type", "title", "detail"), TEXT),
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "the class of the error, for programs"},
        "hint": {"type": "string", "description": "what to do about it, for people"},
        "retryable": {"type": "boolean"},
        "errors": {"type": "array", "items": {"type": "object", "properties": {"at": TEXT, "message": TEXT}}},
    },
}
ANSWER = {"description": "Not possible", "content": {TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
TOKEN: dict[str, Any] = {
    "type": "http",
    "scheme": "bearer",
    "description": "RUSHES_TOKEN; not needed where access is open",
}


class DescribedApp(FastAPI):
    """An application with a complete OpenAPI description, from which clients are generated."""

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
        if not self.openapi_schema:
            _complete(super().openapi())
        return self.openapi_schema or {}


class JsonRoute(APIRoute):
    """A route with the same path as a page: it serves clients that ask for JSON and not for HTML."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Matches only clients that ask for JSON."""
        accept = Headers(scope=scope).get("accept", "")
        if "application/json" not in accept or "text/html" in accept:
            return Match.NONE, {}
        return super().matches(scope)


class ProgramRoute(APIRoute):
    """A route beside a page of the same name: the page is for browsers, which ask for HTML by its name."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As ever, but not for browsers."""
        if "text/html" in Headers(scope=scope).get("accept", ""):
            return Match.NONE, {}
        return super().matches(scope)


class HeadMiddleware:
    """Answers HEAD as GET without a body; some routes answer HEAD themselves, and streams never do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand it on."""
        if scope["type"] == "http" and scope["method"] == "HEAD" and not OWN.search(scope["path"]):
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


def _complete(doc: dict[str, Any]) -> None:
    parts = doc["components"]
    for name in ("HTTPValidationError", "ValidationError"):  # the framework's own, which we never answer with
        parts["schemas"].pop(name, None)
    parts["schemas"]["Problem"] = PROBLEM
    parts["securitySchemes"] = {"token": dict(TOKEN)}
    doc["security"] = [{}, {"token": []}]
    for operations in doc["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = ANSWER
