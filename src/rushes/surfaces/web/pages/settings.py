"""Settings and health: where each value came from, whether every part answers, and what is on this machine."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from rushes.library import VERSION
from rushes.library.doctor import Check
from rushes.surfaces.http.deps import LibraryDep
from rushes.surfaces.web.view import render

router = APIRouter(include_in_schema=False)


@router.get("/settings")
def show_settings(request: Request, library: LibraryDep, check: Annotated[bool, Query()] = False) -> Response:
    """The page; `check` lets the doctor look at everything, which takes a moment."""
    return render(
        request,
        "settings.html",
        parts_ready=library.health(),
        checks=library.doctor() if check else (),
        settings=sorted(library.list_settings(), key=lambda s: s.origin == "default"),
        models=library.models.ls(),
        home=library.folder,
        version=VERSION,
        owner=library.settings.owner,
        open=request.app.state.access.open,
        token=bool(library.settings.token),
        well=_well,
    )


def _well(checks: tuple[Check, ...]) -> bool:
    return all(check.ok for check in checks)
