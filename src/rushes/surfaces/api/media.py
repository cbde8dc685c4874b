"""Files for players and people: playlists, pieces, posters, frames, clips and originals, by range and with an ETag."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path as File
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import FileResponse, RedirectResponse, Response, StreamingResponse

from rushes.domain.errors import NotFound, Refused
from rushes.library import Library
from rushes.library.videos import Video
from rushes.surfaces.http.deps import Id, LibraryDep
from rushes.surfaces.http.schemas import FILES

router = APIRouter(tags=["files"])
api = APIRouter(tags=["files"])
TYPES = {".m3u8": "application/vnd.apple.mpegurl", ".mp4": "video/mp4", ".m4a": "audio/mp4", ".jpg": "image/jpeg",
         ".ts": "video/mp2t", ".vtt": "text/vtt", ".json": "application/json"}  # fmt: skip
PUBLIC = ("videos/proxy/", "videos/clips/", "videos/3d/", "thumbs/", "frames/")  # names that hold a video's id
PIECE = 1 << 20  # bytes that are fetched from a far store at once
_WEEK = "private, max-age=604800"


@router.head("/files/{name:path}", response_class=Response, include_in_schema=False)
@router.get("/files/{name:path}", response_class=Response)
def get_file(request: Request, library: LibraryDep, name: Annotated[str, Path(max_length=500)]) -> Response:
    """A published file of one of the owner's videos."""
    prefix = next((p for p in PUBLIC if name.startswith(p)), "")
    if not prefix:
        raise NotFound("file not found")
    library.videos.get(name.removeprefix(prefix).partition("/")[0])  # whose it is
    kind = TYPES.get(File(name).suffix, "application/octet-stream")
    return _published(request, library, name, kind)


@api.head("/videos/{video_id}/frames/{ms}.jpg", response_class=Response, include_in_schema=False)
@api.get("/videos/{video_id}/frames/{ms}.jpg", response_class=Response)
def get_frame(
    request: Request, library: LibraryDep, video_id: Id, ms: Annotated[int, Path(ge=0, le=2**40)]
) -> Response:
    """The picture at a moment (milliseconds of film time); the poster where no frame is kept."""
    video = library.videos.get(video_id)
    try:
        jpeg = library.videos.frame(video, ms * 1000)
    except NotFound:
        return _poster(video)
    etag = f'"{hashlib.sha256(jpeg).hexdigest()[:32]}"'
    return _with_etag(request, Response(jpeg, media_type="image/jpeg"), etag, _WEEK)


@api.get("/videos/{video_id}/poster", response_class=Response)
def get_poster(library: LibraryDep, video_id: Id) -> Response:
    """Where its poster is."""
    return _poster(library.videos.get(video_id))


@api.head("/videos/{video_id}/original", response_class=Response, include_in_schema=False)
@api.get("/videos/{video_id}/original", response_class=Response)
def get_original(request: Request, library: LibraryDep, video_id: Id) -> Response:
    """The film as it was taken in, to keep."""
    video = library.videos.get(video_id)
    source = library.videos.source(video)
    if "://" in source:
        raise Refused("the original is in a bucket", f"Download it there: {source}")
    return _file(request, File(source), "application/octet-stream", video.name)


def _poster(video: Video) -> Response:
    if not video.poster:
        raise NotFound(f"{video.name} has no poster yet")
    return RedirectResponse(FILES + video.poster, 307)


def _published(request: Request, library: Library, name: str, kind: str) -> Response:
    """From the folder, or by parts from a far store."""
    try:
        place = File(library.videos.address(name))
        return _file(request, place, kind) if place.is_file() else _far(request, library, name, kind)
    except Refused as e:
        raise NotFound("file not found") from e


def _far(request: Request, library: Library, name: str, kind: str) -> Response:
    found = library.videos.file_part(name, 0, 0)
    if found is None:
        raise NotFound("file not found", "It appears when its stage is done.")
    version, size, _ = found
    etag = f'"{version}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Accept-Ranges": "bytes"}
    if is_unchanged(request, etag):
        return Response(status_code=304, headers=headers)
    whole = request.headers.get("if-range", etag) != etag
    start, end = (0, size) if whole else parse_range(request.headers.get("range", ""), size)
    if start >= end and size:
        return Response(status_code=416, headers=headers | {"Content-Range": f"bytes */{size}"})
    headers["Content-Length"] = str(end - start)
    if end - start < size:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = 206 if "Content-Range" in headers else 200
    return StreamingResponse(_parts(library, name, version, start, end), status, headers, kind)


def parse_range(said: str, size: int) -> tuple[int, int]:
    """What a Range header asks for, end exclusive; empty if there is nothing, all of it if it is no single range."""
    asked = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", said.strip())
    if not asked or asked.group(1) == asked.group(2) == "":
        return 0, size
    first, last = asked.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size


def _parts(library: Library, name: str, version: str, start: int, end: int) -> Iterator[bytes]:
    """Piece by piece; one that is replaced meanwhile ends early, so that no player gets half of each."""
    while start < end:
        part = library.videos.file_part(name, start, min(end, start + PIECE))
        if part is None or part[0] != version or not part[2]:
            return
        yield part[2]
        start += len(part[2])


def is_unchanged(request: Request, etag: str) -> bool:
    """Whether the reader has it: its tag is among those named, perhaps made weak by a proxy that packs."""
    named = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    return etag in named or "*" in named


def _file(request: Request, place: File, kind: str, download: str = "") -> Response:
    found = place.stat()
    etag = f'"{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ino:x}"'
    answer = FileResponse(place, media_type=kind, filename=download or None, stat_result=found)
    return _with_etag(request, answer, etag, "private, no-cache")


def _with_etag(request: Request, answer: Response, etag: str, keep: str) -> Response:
    """The answer, or that the reader has it."""
    headers = {"ETag": etag, "Cache-Control": keep}
    if is_unchanged(request, etag):
        return Response(status_code=304, headers=headers)
    answer.headers.update(headers)
    return answer


def content_disposition(name: str, *, download: bool = True) -> str:
    """A header that gives a file its name in any script; old programs read the plain one."""
    plain, full = re.sub(r"[^A-Za-z0-9 ._()-]", "_", name), quote(name, safe="", errors="replace")
    return f"{'attachment' if download else 'inline'}; filename=\"{plain}\"; filename*=UTF-8''{full}"
