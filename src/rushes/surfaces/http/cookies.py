"""Cookies that, behind TLS, no other site, no sibling host and no plain connection can set or read."""

from fastapi import Request, Response
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

SESSION = "rushes_session"


def cookie_of(scope: Scope, name: str) -> str:
    """The cookie of this name that a browser sent."""
    sent = "; ".join(Headers(scope=scope).getlist("cookie"))
    return cookie_parser(sent).get(_full_name(scope, name), "")


def set_cookie(request: Request, answer: Response, name: str, value: str, seconds: int) -> None:
    """Set a cookie that scripts cannot read."""
    name, secure = _full_name(request.scope, name), _is_secure(request.scope)
    answer.set_cookie(name, value, seconds, httponly=True, samesite="lax", secure=secure)


def drop_cookie(request: Request, answer: Response, name: str) -> None:
    """Remove a cookie."""
    name, secure = _full_name(request.scope, name), _is_secure(request.scope)
    answer.delete_cookie(name, httponly=True, samesite="lax", secure=secure)


def _full_name(scope: Scope, name: str) -> str:
    return f"__Host-{name}" if _is_secure(scope) else name


def _is_secure(scope: Scope) -> bool:
    return str(scope["scheme"]) == "https"
