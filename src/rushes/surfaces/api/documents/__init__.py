"""The routes of the design documents, a module each: thin aliases of `/api/v1` in the words of that document."""

from fastapi import APIRouter

from rushes.surfaces.api.documents import cortana_vision, eioku, stereo_spot
from rushes.surfaces.http.openapi import JsonRoute

router = APIRouter(include_in_schema=False)
for_programs = APIRouter(include_in_schema=False, route_class=JsonRoute)  # pages of the same name are for people
for _document in (stereo_spot, eioku, cortana_vision):
    router.include_router(_document.router)
    for_programs.include_router(_document.for_programs)
