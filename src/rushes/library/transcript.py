"""The current transcript of a video: the selected run's lines, with corrections applied.

Every reader takes it from here: exports, captions, subtitles of clips, and the files beside the film.
"""

from collections.abc import Sequence

from rushes.domain.errors import NotFound
from rushes.domain.keys import canonical
from rushes.domain.observation import Observation
from rushes.home import Home
from rushes.index.changes import Correction
from rushes.index.follower import CORRECTION, SELECTION, parse_correction
from rushes.index.port import Video
from rushes.jobs.originals import manifest_of, read_artifact
from rushes.media import subtitles
from rushes.media.transcripts import spoken_time, transcript_document

FILES = {"srt": "subtitles.srt", "vtt": "subtitles.vtt", "txt": "transcript.txt", "json": "transcript.json"}


def export_transcript(home: Home, video: Video, kind: str, language: str = "") -> bytes:
    """The transcript as srt, vtt, txt or json; of one language if one is named.

    Raises:
        NotFound: nobody has transcribed it yet.
    """
    if not (language or has_selected_run(home, video) or speech_corrections(home, video)):
        return _as_made(home, video, FILES[kind])
    lines = [line for line in home.index.lines(video.owner, video.id) if not language or line.language == language]
    return written(lines, kind)


def written(lines: Sequence[Observation], kind: str) -> bytes:
    """Lines as srt, vtt, txt or json."""
    if kind == "json":
        return canonical(transcript_document(lines))
    if kind == "txt":
        return subtitles.text(lines).encode()
    cues = subtitles.cues(lines)
    return (subtitles.srt(cues) if kind == "srt" else subtitles.vtt(cues)).encode()


def spoken_languages(home: Home, video: Video) -> list[str]:
    """The languages of its lines, most spoken first."""
    return list(spoken_time(home.index.lines(video.owner, video.id)))


def has_selected_run(home: Home, video: Video) -> bool:
    """Whether somebody said which run of its speech counts."""
    return any(home.records.get(SELECTION, video.owner, f"{of}.speech") for of in (video.id, "*"))


def heard_in(home: Home, video: Video) -> frozenset[str]:
    """The jobs whose speech readers see."""
    state = home.index.state(video.owner, video.id)
    results = (r for r, _ in state.results if r.kind == "speech" and (r.kind, r.key, r.manifest) in state.shown)
    return frozenset(result.job for result in results)


def speech_corrections(home: Home, video: Video) -> list[Correction]:
    """What people said instead of what was heard, in order of time."""
    found = (parse_correction(record) for record in home.all_records(CORRECTION, video.id))
    return sorted((c for c in found if c and c.kind == "speech"), key=lambda c: (c.start_us, c.end_us, c.id))


def _as_made(home: Home, video: Video, name: str) -> bytes:
    """A file of the newest job that has a transcript."""
    for job in video.jobs:
        if manifest := manifest_of(home, job, "transcript", "transcript"):
            return read_artifact(home, manifest, name)
    raise NotFound(f"{video.name} has no transcript yet", f"Run: rushes run {video.path}")
