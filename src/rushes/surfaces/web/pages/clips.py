"""Clips: the list, and one clip to watch, download, link to and delete."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from rushes.surfaces.api.clips import ClipShape, get_clip
from rushes.surfaces.http.deps import Id, LibraryDep
from rushes.surfaces.web.view import back, render

router = APIRouter(include_in_schema=False)
SHOWN = 100


@router.get("/library/clips")
def show_clips(request: Request, library: LibraryDep) -> Response:
    """The newest clips of all videos."""
    clips = [ClipShape.of(clip) for clip in library.clips.newest(SHOWN)]
    videos = library.videos.get_many({clip.video_id for clip in clips})
    names = {id: video.name for id, video in videos.items()}
    return render(request, "clips.html", clips=clips, names=names, most=SHOWN)


@router.get("/library/clips/{clip_id}")
def show_clip(request: Request, library: LibraryDep, clip_id: Id) -> Response:
    """One clip."""
    clip = get_clip(library, clip_id)
    name = library.videos.get_many({clip.video_id})
    return render(request, "clip.html", clip=clip, video=name[clip.video_id].name if name else "")


@router.post("/library/clips/{clip_id}/delete")
def drop_clip(request: Request, library: LibraryDep, clip_id: Id) -> Response:
    """Delete it; back to where its list is."""
    clip = library.clips.delete(clip_id)
    came = request.headers.get("referer", "")
    return back(request, "Clip deleted.", f"/videos/{clip.video}#clips" if "/videos/" in came else "/library/clips")
