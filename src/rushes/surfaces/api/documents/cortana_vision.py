"""cortana-vision: clips on request."""

from fastapi import APIRouter

from rushes.surfaces.api import clips
from rushes.surfaces.http.openapi import JsonRoute

router = APIRouter()
for_programs = APIRouter(route_class=JsonRoute)
router.include_router(clips.router)
