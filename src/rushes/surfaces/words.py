"""States, times, sizes and ranges as people read them: one set for the terminal, the pages and the API."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction

from rushes.domain.errors import Refused
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.keys import parse_task_id
from rushes.domain.span import clock
from rushes.domain.task import Task, TaskState
from rushes.domain.worker import Worker

JOB_WORDS = ("waiting", "running", "paused", "done", "failed", "cancelled")
TASK_WORDS = ("done", "adopted", "leased", "ready", "backing off", "waiting", "dead", "cancelled")
UNFINISHED = (JobState.RUNNING, JobState.CHUNKING, JobState.CREATED)
_FINAL = {JobState.COMPLETED: "done", JobState.FAILED: "failed", JobState.CANCELLED: "cancelled"}
_TELLING = ("running", "waiting", "paused", "done", "failed", "cancelled")  # of several jobs, the first is shown

_UNITS = (("h", 3600.0, 5400), ("min", 60.0, 90), ("s", 1.0, 0))  # and from how many seconds each is used
_APART = 1.05  # a range that is wider than this shows two ends, if need be in a finer unit
_CLOCK = re.compile(r"^(?:(\d+):)?(\d+):([0-5]?\d(?:[.,]\d+)?)\Z", re.ASCII)
_SECONDS = re.compile(r"^(\d+(?:[.,]\d+)?)s?\Z", re.ASCII)

KINDS = {"speech": "Speech", "text": "Text on screen", "object": "Objects", "face": "Faces", "person": "People",
         "place": "Places", "entity": "Numbers and links", "shot": "Shots", "picture": "Pictures",
         "name": "Video names"}  # fmt: skip
STAGE_NAMES = {"probe": "check file", "develop": "make preview", "playlist": "join preview", "audio": "extract sound",
               "shots": "find shots", "transcribe": "transcribe", "transcript": "join transcript",
               "stills": "save frames", "read_text": "read text", "segments": "merge text",
               "objects": "find objects", "faces": "find faces",
               "places": "recognise places", "pictures": "embed pictures", "clip": "cut clip",
               "preview": "preview 3D", "depth": "estimate depth",
               "grade": "set depth", "source_segments": "cut segments",
               "stereo": "make 3D", "join": "join 3D"}  # fmt: skip
RECIPE_NAMES = {"searchable": "Full", "subtitles": "Subtitles", "text": "Text on screen", "analyse": "Search only",
                "3d": "3D", "everything": "Full and 3D", "clip": "Clip"}  # fmt: skip
TASK_NAMES = {"leased": "in progress", "adopted": "reused", "backing off": "retrying soon", "dead": "failed"}
LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese",
             "nl": "Dutch", "ja": "Japanese", "zh": "Chinese", "ru": "Russian", "uk": "Ukrainian", "pl": "Polish",
             "ko": "Korean", "ar": "Arabic", "tr": "Turkish", "sv": "Swedish", "cy": "Welsh"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ActiveJobs:
    """The jobs that live workers hold tasks of, with the hosts of those workers."""

    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    workers: int = 0
    slots: int = 0
    busy: int = 0  # slots that hold a task

    def word(self, job: Job) -> str:
        """A job's state in one word: `running` while a live worker holds a task of it."""
        return self.word_of(job.id, job.state, paused=job.paused)

    def word_of(self, job: str, state: str, *, paused: bool = False) -> str:
        """The same from what the index knows."""
        if state in FINAL:
            return _FINAL[JobState(state)]
        return "paused" if paused else "running" if job in self.hosts else "waiting"


def active_jobs(workers: Iterable[Worker]) -> ActiveJobs:
    """Which jobs are being worked on now."""
    hosts: dict[str, set[str]] = {}
    alive = [w for w in workers if w.alive]
    for worker in alive:
        for task in worker.held:
            hosts.setdefault(parse_task_id(task)[0], set()).add(host_of(worker))
    ours = [w for w in alive if w.takes_tasks]
    slots, busy = sum(w.incarnation.slots for w in ours), sum(len(w.held) for w in ours)
    return ActiveJobs({job: tuple(sorted(names)) for job, names in hosts.items()}, len(ours), slots, busy)


def final_word(state: object) -> str:
    """A final state of the ledger in people's words: completed is done."""
    return _FINAL[JobState(str(state))] if state in FINAL else str(state)


def video_word(words: Iterable[str]) -> tuple[str, int]:
    """The states of a video's jobs in one word, and how many jobs failed besides."""
    counted = Counter(words)
    first = min(counted, key=_TELLING.index)
    return first, counted["failed"] if first != "failed" else 0


def task_word(task: Task) -> str:
    """A task's state in one word: the ledger's, with adopted results and delayed retries told apart."""
    if task.state is TaskState.DONE:
        return "adopted" if task.adopted else "done"
    return "backing off" if task.state is TaskState.READY and task.due_in else task.state.value


def worker_word(worker: Worker) -> str:
    """A worker's state in one word, or why it takes no tasks."""
    if not worker.alive:
        return "gone"
    if worker.draining or worker.note.startswith("draining"):
        return "draining"
    return worker.note or ("working" if worker.held else "idle")


def host_of(worker: Worker) -> str:
    """The machine's name, out of the worker's id: `x86_64-2.studio.local.a0fb65.17570b12`."""
    return worker.incarnation.id.partition(".")[2].rsplit(".", 2)[0] or worker.incarnation.host


def plural(number: int, one: str, more: str = "") -> str:
    """1 hit, 2 hits, 1,200 hits."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def many(number: int) -> str:
    """A count that stands beside a word: nothing for none, 99+ where nobody reads on."""
    return "99+" if number > 99 else str(number or "")


def size(number: int | None) -> str:
    """1.3 GB; decimal, as disks are sold."""
    if number is None:
        return "unknown"
    value = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 99.5 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def duration(seconds: float) -> str:
    """22 min 10 s."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def time_range(seconds: tuple[float, float] | None) -> str:
    """A range of time: 6-9 min; never more exact than it is, and never a countdown."""
    if seconds is None:
        return "measuring"
    low, high = seconds[0], max(seconds)
    if high < 1:
        return "under 1 s"
    units = [unit for unit in _UNITS if high >= unit[2]]
    ranges = [(_figure(low / length, unit), _figure(high / length, unit), unit) for unit, length, _ in units]
    wide = high > _APART * low
    a, b, unit = next((one for one in ranges if wide and one[0] != one[1]), ranges[0])
    return f"{b} {unit}" if a == b else f"{a}-{b} {unit}"


def _figure(value: float, unit: str) -> str:
    return f"{value:.1f}".removesuffix(".0") if unit == "h" else str(max(1, round(value)))


def speed_factor(factor: float | None) -> str:
    """Speed against real time: 3.1x."""
    if factor is None:
        return ""
    return f"{factor:.0f}x" if factor >= 99.5 else f"{factor:.1f}x"


def timecode(us: int, digits: int = 0) -> str:
    """Video time: 12:41, 1:02:03, with digits of a second 12:41.7."""
    return clock(us, digits)


def parse_timecode(text: str) -> int:
    """Microseconds from what a person typed: 1:02:03.5, 754.25 or 90s.

    Raises:
        Refused: it is not a time.
    """
    if found := _SECONDS.match(text):
        return _us(found[1])
    if found := _CLOCK.match(text):
        hours, minutes, seconds = found.groups()
        return (int(hours or 0) * 3600 + int(minutes) * 60) * 1_000_000 + _us(seconds)
    raise Refused(f"{text[:40]!r} is not a time", "Write a time as 1:02:03.5, or as seconds (754.25).")


def parse_reference(text: str) -> tuple[str, int, int] | None:
    """Video, start and end of `VIDEO@12:41.000-12:45.000`; None if the text is not such a reference."""
    video, at, span = text.rpartition("@")
    start, dash, end = span.partition("-")
    if not (video and at and dash):
        return None
    try:
        return video, parse_timecode(start), parse_timecode(end)
    except Refused:
        return None  # a file name with an @ in it


def _us(seconds: str) -> int:
    return int(Fraction(seconds.replace(",", ".")) * 1_000_000)


def date_time(at: str, *, local: bool) -> str:
    """2026-01-31 18:05 CET in the zone of this machine; else 2026-01-31T17:05:09Z."""
    return f"{local_time(at):%Y-%m-%d %H:%M %Z}" if local else utc(at)


def utc(at: str) -> str:
    """Without fractions of a second."""
    return f"{at[:19]}Z"


def local_time(at: str) -> datetime:
    """In the zone of this machine."""
    return datetime.fromisoformat(at).astimezone()


def parse_ago(text: str) -> float:
    """How many seconds ago `30m`, `24h`, `7d` or a date (in UTC) was.

    Raises:
        Refused: it is neither.
    """
    if asked := re.fullmatch(r"([0-9]{1,6})([mhd])", text):
        return int(asked[1]) * {"m": 60.0, "h": 3600.0, "d": 86400.0}[asked[2]]
    try:
        at = datetime.fromisoformat(text)
    except ValueError as e:
        raise Refused(f"{text!r} is not a time", "For example: 24h, 7d, 2026-01-31") from e
    return (datetime.now(UTC) - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds()


def seconds_between(start: str | None, end: str | None) -> float | None:
    """How long it took; None if it has not begun or not ended."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() if start and end else None


def kind_name(kind: str) -> str:
    """What was observed: speech, text on screen, ..."""
    return KINDS.get(kind, kind)


def stage_name(stage: str) -> str:
    """A stage as pages call it; one of another package has its own name."""
    return STAGE_NAMES.get(stage, stage.replace("_", " "))


def recipe_name(recipe: str) -> str:
    """A recipe as pages call it."""
    return RECIPE_NAMES.get(recipe, recipe)


def task_name(word: str) -> str:
    """The state of a task as pages call it: the ledger's words are for programs and operators."""
    return TASK_NAMES.get(word, word)


def frame_rate(rate: Sequence[int]) -> str:
    """25 fps, 29.97 fps."""
    return f"{rate[0] / rate[1]:.3f}".rstrip("0").rstrip(".") + " fps"


def container_name(container: str, path: str) -> str:
    """MP4: of a container with many names, the one that the file has."""
    names, suffix = container.split(","), path.rpartition(".")[2].lower()
    name = suffix if suffix in names else names[0]
    return {"matroska": "MKV", "mpegts": "MPEG-TS"}.get(name, name.upper())


def language_name(code: str) -> str:
    """English for en."""
    return LANGUAGES.get(code, code or "unknown")


def unnamed_person(person: str) -> str:
    """A person without a name, by the end of the id."""
    return f"Person {person[-4:]}"


def setting_value(value: object) -> str:
    """A setting as rushes.toml has it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)
