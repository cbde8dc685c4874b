"""The videos of a home: find them, read what is known of each, annotate them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rushes.annotations.imported_sidecars import catch_up
from rushes.blobs.documents import address
from rushes.domain.errors import NotFound, Refused, SourceMissing
from rushes.domain.job import Job
from rushes.domain.keys import is_id, short
from rushes.domain.observation import Observation
from rushes.domain.text import clean_text
from rushes.files import local_path
from rushes.home import Home
from rushes.index.follower import CORRECTION, NAME, SELECTION
from rushes.index.port import Video, find_video
from rushes.jobs.originals import original, with_current_path
from rushes.ledger.pages import every
from rushes.ledger.port import Page
from rushes.library.names import goes_by, pick_one
from rushes.library.videos.files import PublishedFilm, WrittenFile
from rushes.media.originals import LocalOriginal
from rushes.records.port import Record

if TYPE_CHECKING:
    from rushes.jobs.maintenance.reports import RemovalReport
    from rushes.library.videos.runs import Comparison, Envelope

__all__ = ["Observation", "Page", "Record", "Video", "Videos", "WrittenFile"]


EVERY = "*"  # instead of a video's id: what is chosen for all


@dataclass(frozen=True, slots=True)
class Videos:
    """The videos of one owner; those of others do not exist here."""

    home: Home

    def page(self, cursor: str = "", limit: int = 100) -> tuple[tuple[Video, ...], str]:
        """Videos, newest first, and the next cursor ("" at the end)."""
        catch_up(self.home)
        return self.home.index.videos(self.home.owner, cursor, limit)

    def get(self, id: str) -> Video:
        """One video by its exact id.

        Raises:
            NotFound: this owner has none of that id.
        """
        catch_up(self.home)
        found = find_video(self.home.index, self.home.owner, id) if is_id(id) else None
        if found is None:
            raise NotFound(f"no video {id[:60]!r}", what="video")
        return with_current_path(self.home, found)

    def get_many(self, ids: Collection[str]) -> dict[str, Video]:
        """Those of these videos that are there, by id, as the index knows them now."""
        return {v.id: v for v in self.home.index.videos(self.home.owner, ids=ids)[0]} if ids else {}

    def find(self, name: str) -> Video:
        """One video by its id, the beginning of it, its file name (with or without ending) or one of its paths.

        Raises:
            NotFound: none, or more than one.
        """
        catch_up(self.home)
        name = clean_text(name)
        found = [v for v in self._all() if goes_by(v, name)]
        exact = [v for v in found if name in (v.id, v.name, *v.paths)]
        return with_current_path(self.home, pick_one(name, exact or found, "video"))

    def lines(self, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        """What is said (or seen: text, object, person, place) in order of time; grows while a job runs."""
        return self.home.index.lines(self.home.owner, video, kind)

    def published(self, prefix: str) -> list[str]:
        """The published names that begin so; those with numbers in their order."""
        return sorted(self.home.blobs.keys(prefix), key=lambda name: (len(name), name))

    def shots(self, video: Video) -> list[tuple[int, int]]:
        """Start and end of each shot in microseconds.

        Raises:
            NotFound: they are not there yet.
        """
        from rushes.library.videos.export import shots_of

        return [(s.start_us, s.end_us) for s in shots_of(self.home, video)]

    def frame(self, video: Video, us: int) -> bytes:
        """A JPEG of the picture at a moment.

        Raises:
            NotFound: no frame is kept there.
        """
        from rushes.library.videos.frames import frame

        return frame(self.home, video, us)

    def envelopes(
        self, video: Video, kind: str = "", run: str = "", after: tuple[int, int] = (0, 0)
    ) -> Iterator[tuple[tuple[int, int], Envelope]]:
        """Observations with their provenance after a position, each with the position after it."""
        from rushes.library.videos.runs import envelopes

        return envelopes(self.home, video.id, kind, run, after)

    def compare(self, video: Video, left: str, right: str, kind: str = "speech") -> Comparison:
        """What two runs say of a kind, side by side."""
        from rushes.library.videos.runs import compare

        return compare(self.home, video, left, right, kind)

    def export(self, video: Video, kind: str, out: str | Path | None = None, language: str = "") -> bytes:
        """A video's results in a form other tools read: srt, vtt, txt, json, csv, jsonl, parquet, edl, otio."""
        from rushes.library.videos.export import export

        return export(self.home, video, kind, local_path(out) if out else None, language)

    def spoken_languages(self, video: Video) -> list[str]:
        """The languages that are spoken in it, most spoken first."""
        from rushes.library.transcript import spoken_languages

        return spoken_languages(self.home, video)

    # Files
    def place_of(self, video: Video) -> str:
        """Where its original was when it was taken in, as a whole path or address."""
        return clean_text(self.home.place_of(video.path))

    def source(self, video: Video) -> str:
        """Where the original is now, as `Library.add` takes it.

        Raises:
            SourceMissing: it is at none of its places any more.
        """
        return self.home.place_of(original(self.home, video).spec.source.path)

    def open_original(self, video: Video) -> BinaryIO:
        """The original's bytes: of the very file that was compared with what was taken in.

        Raises:
            SourceMissing, SourceChanged: it is at none of its places any more.
        """
        source = original(self.home, video).spec.source
        if source.far:
            return self.home.original(source).open()
        if source.site not in ("", self.home.site):
            raise SourceMissing(f"{video.name} is on {source.site}, which this machine does not see")
        return LocalOriginal(self.home.originals, source, video.sha256).open()

    def address(self, name: str) -> str:
        """Where a published file is: a path, or an address in a bucket."""
        return address(self.home.blobs, name)

    def file_part(self, name: str, start: int, end: int) -> tuple[str, int, bytes] | None:
        """Version, size and the bytes [start, end) of a published file in a bucket; None if it is not there."""
        part = self.home.blobs.read(name, start, end)
        return (part.version, part.size, part.data) if part else None

    def signed_address(self, name: str, disposition: str = "") -> str:
        """Where a published file is read in the bucket, for an hour; "" if it lies in a folder."""
        bucket = self.home.multipart
        return bucket.sign_get(name, 3600, disposition) if bucket else ""

    def films_3d(self, video: Video) -> list[PublishedFilm]:
        """Every film in 3D that was made of it."""
        from rushes.library.videos.stereo import list_films

        return list_films(self.home, video)

    def previews_3d(self, video: Video) -> list[tuple[str, str]]:
        """Format and published name of every 3D preview of it."""
        from rushes.library.videos.stereo import list_previews

        return list_previews(self.home, video)

    def write_beside(self, jobs: Iterable[Job]) -> list[WrittenFile]:
        """Write subtitles and sidecars of finished jobs beside their originals, never over files of others."""
        from rushes.library.videos.sidecar_files import write_sidecar, write_subtitles

        return [f for job in jobs for write in (write_subtitles, write_sidecar) for f in write(self.home, job)]

    def write_sidecars(self, video: Video) -> list[WrittenFile]:
        """Write everything known of a video beside its original, as players, editors and `rushes index` read it."""
        from rushes.library.videos.sidecar_files import write_all

        return write_all(self.home, video)

    def missing_files(self, video: Video) -> list[str]:
        """Published files of it that are missing."""
        from rushes.jobs.maintenance.published_names import find_missing_names

        return sorted(find_missing_names(self.home, self._jobs(video)))

    def repair(self, video: Video) -> tuple[int, int]:
        """Make what is missing or damaged of it again: how many files at once, and by how many jobs that run again."""
        from rushes.library.work.run import repair_video

        return repair_video(self.home, self._jobs(video))

    # What people say
    def rename(self, video: Video, name: str) -> None:
        """Give it a name; an empty one takes it back."""
        if name:
            self.home.records.put(NAME, self.home.owner, video.id, {"name": name})
        else:
            self.home.records.delete(NAME, self.home.owner, video.id)

    def remove(self, id: str, *, originals: bool = False) -> RemovalReport:
        """Delete a video with all that was made of it; the original stays, unless it was uploaded and `originals`.

        Raises:
            NotFound: there is none of that id.
        """
        from rushes.jobs.maintenance.video_removal import finish_removal, remove_video, unfinished_removal

        if left := unfinished_removal(self.home, id):
            return finish_removal(self.home, left)
        return remove_video(self.home, self.get(id), originals=originals)

    def correct(self, video: Video, start_us: int, end_us: int, text: str, kind: str = "speech") -> Record:
        """Say what really stands at a place; an empty text says that nothing does. Files beside the film follow."""
        from rushes.library.videos.sidecar_files import write_corrected

        place = {"video": video.id, "start_us": start_us, "end_us": end_us}  # never a cluster or a row
        doc = {"kind": kind, "text": text, **place}
        record = self.home.records.put(CORRECTION, self.home.owner, "cor_" + short([kind, place]), doc)
        write_corrected(self.home, video)
        return record

    def corrections(self, video: Video) -> list[Record]:
        """What was corrected in it."""
        return list(self.home.all_records(CORRECTION, video.id))

    def undo_correction(self, id: str) -> None:
        """Take a correction back; files beside the film follow.

        Raises:
            NotFound: there is none.
        """
        from rushes.library.videos.sidecar_files import write_corrected

        record = self.home.records.get(CORRECTION, self.home.owner, id)
        self.home.delete_record(CORRECTION, id)
        video = find_video(self.home.index, self.home.owner, str(record.doc["video"])) if record else None
        if video:
            write_corrected(self.home, video)

    def select_run(self, video: Video | None, kind: str, run: str = "", profile: str = "") -> Record:
        """Say which run counts for a kind of observations: one of its jobs, the newest of a profile, or the newest.

        Without a video, for all of which nothing else is said.
        Raises:
            Refused: that is not a run of this video, or there is no such profile.
        """
        if run and (video is None or run not in video.jobs):
            hint = f"Its runs: {', '.join(video.jobs)}" if video else "Name the video."
            raise Refused(f"{run[:60]!r} is not a run of this video", hint)
        from rushes.engines.models.speech import PROFILES

        if profile and profile not in PROFILES:
            raise Refused(f"unknown profile {profile[:60]!r}", f"Choose from: {', '.join(PROFILES)}")
        of = video.id if video else EVERY
        doc = {"video": of, "kind": kind, "run": run, "profile": profile}
        return self.home.records.put(SELECTION, self.home.owner, f"{of}.{kind}", doc)

    def selected_runs(self, video: Video | None) -> list[Record]:
        """What was chosen for a video, or for every video, by kind."""
        return list(self.home.all_records(SELECTION, video.id if video else EVERY))

    def _jobs(self, video: Video) -> list[Job]:
        """Its jobs, the newest first."""
        rows = self.home.ledger.jobs(self.home.owner, ids=video.jobs).rows if video.jobs else ()
        return sorted(rows, key=lambda job: job.created_at, reverse=True)

    def _all(self) -> Iterator[Video]:
        return every(lambda cursor: Page(*self.home.index.videos(self.home.owner, cursor, 500)))
