"""Eioku: videos, their tasks and artifacts, the places that are looked at."""

from fastapi import APIRouter

from rushes.surfaces.api import artifacts, jobs, videos
from rushes.surfaces.http.openapi import JsonRoute

router = APIRouter()
for_programs = APIRouter(route_class=JsonRoute)
for _one in (artifacts.router, videos.paths, jobs.tasks, jobs.steps):
    router.include_router(_one)

router.add_api_route("/videos", videos.list_videos)
for_programs.add_api_route("/videos/{video_id}", videos.get_video)
