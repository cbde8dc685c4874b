"""Every route of the application, pages and aliases too, as the framework finds them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI


@dataclass(frozen=True, slots=True)
class RouteShape:
    """One path, one method, and the function that answers."""

    method: str
    path: str
    endpoint: Callable[..., Any]


def every_route(app: FastAPI) -> list[RouteShape]:
    """All of them."""
    return list(_walk(app.routes))


def _walk(routes: Any) -> Iterator[RouteShape]:
    for route in routes:
        if hasattr(route, "effective_candidates"):
            yield from _walk(route.effective_candidates())
        elif endpoint := getattr(route, "endpoint", None) or getattr(route, "original_route", None):
            found = getattr(endpoint, "endpoint", endpoint)
            for method in sorted(route.methods):
                yield RouteShape(method, route.path, found)
