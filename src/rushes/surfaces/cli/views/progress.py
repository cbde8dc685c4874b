"""Progress while work runs: bars on a terminal, a line per finished stage in a pipe, JSON lines for programs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.live import Live
from rich.text import Text

from rushes.domain.grouping import grouped
from rushes.domain.job import FINAL
from rushes.library.work.progress import (
    DiskSpace,
    EngineOutage,
    JobProgress,
    JobsProgress,
    RunProgress,
    StageProgress,
    StopSignal,
)
from rushes.surfaces.cli.screen import DONE, NOW, TROUBLE, Part, Screen
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.rows import facts_of, header, recipe_of
from rushes.surfaces.words import plural, size, speed_factor, time_range

CELLS = 20
STATUS_SECONDS = 1.0
OUTAGE_SECONDS = 30.0  # after which an outage that is told of no more is over: it is told of every ten seconds or so
NAME_CELLS, HEADS = 32, 12  # on a terminal: cells for a name, and videos that get a line each
KEEPS = "Ctrl-C pauses, nothing is lost"

Range = tuple[float, float]
Expect = Callable[[JobProgress], Range | None]  # the estimate of a job whose plan is known, if there is one yet


@dataclass(frozen=True, slots=True)
class Row:
    """One bar: a stage of all videos together, or the total."""

    name: str
    done: int
    total: int
    running: float
    active: int
    speed: float | None = None
    remaining: Range | None = None

    @property
    def over(self) -> bool:
        """Whether nothing of it is left."""
        return self.done >= self.total


class Watcher:
    """Shows the progress of a run."""

    def begin(self, films: int) -> None:
        """So many videos were added; nothing is known of them yet."""

    def show(self, progress: RunProgress) -> None:
        """What the run reports."""
        match progress:
            case JobsProgress():
                self.look(progress)
            case DiskSpace():
                self.disk_space(progress)
            case EngineOutage():
                self.outage(progress)
            case StopSignal():
                self.stop()

    def look(self, progress: JobsProgress) -> None:
        """The jobs at one moment; called a few times a second."""

    def stop(self) -> None:
        """A signal asked to stop."""

    def disk_space(self, space: DiskSpace) -> None:
        """The disk has no space for more, or has again."""

    def outage(self, outage: EngineOutage) -> None:
        """Models cannot be asked; told again and again while that lasts."""

    def close(self) -> None:
        """The work has stopped."""


def stopping(signals: int) -> str:
    """What is done about a signal, the first and any other."""
    return "stopping after the running chunks; Ctrl-C again stops at once" if signals == 1 else "stopping at once"


def rows_of(snapshots: Sequence[JobProgress]) -> list[Row]:
    """One row per stage over all videos, in plan order."""
    stages = (stage for snapshot in snapshots for stage in snapshot.stages)
    return [_row(name, some) for name, some in grouped(stages, lambda stage: stage.stage).items()]


def _row(name: str, some: Sequence[StageProgress]) -> Row:
    speed = next((s.speed for s in reversed(some) if s.speed), some[0].speed)
    return Row(name, *_counts(some), speed, _sum([s.remaining for s in some]))


def _counts(some: Sequence[StageProgress | Row]) -> tuple[int, int, float, int]:
    done, total = sum(s.done for s in some), sum(s.total for s in some)
    return done, total, sum(s.running for s in some), sum(s.active for s in some)


def total_of(snapshots: Sequence[JobProgress], remaining: Range | None) -> Row:
    """The row for everything; a video that was not opened yet counts as many chunks as the others have."""
    done, total, running, active = _counts(rows_of(snapshots))
    opened = sum(bool(s.stages) for s in snapshots)
    speeds = [s.speed for s in snapshots if s.speed]
    whole = round(total * len(snapshots) / max(1, opened))
    return Row("total", done, whole, running, active, sum(speeds) if speeds else None, remaining)


def bar(row: Row, *, utf8: bool) -> list[Part]:
    """Done, running now, still to do."""
    full, now, left = "█▓░" if utf8 else "#>."
    done = CELLS * row.done // max(1, row.total)
    reached = min(CELLS, round(CELLS * (row.done + row.running) / max(1, row.total)))
    running = max(reached - done, 1 if row.active and done < CELLS else 0)
    return [(full * done, DONE), (now * running, NOW), (left * (CELLS - done - running), DONE)]


def watcher(session: Session, expect: Expect) -> Watcher:
    """Bars, lines or JSON, by where the output goes."""
    if session.json:
        return Lines(session)
    if session.bars:
        return Bars(session.err, expect)
    return Plain(session, expect)


class Bars(Watcher):
    """Live bars; a header for each video as soon as its plan is known."""

    def __init__(self, screen: Screen, expect: Expect) -> None:
        self._screen, self._heads = screen, Heads(screen.line, expect, room=NAME_CELLS, most=HEADS)
        self._live = Live(console=screen.console, auto_refresh=False, transient=True)
        self._signals, self._space, self._outage = 0, DiskSpace(enough=True), ""
        self._outage_until = 0.0

    def begin(self, films: int) -> None:
        """Something to see before the first snapshot."""
        self._live.start()
        self._live.update(self._reading(films), refresh=True)

    def stop(self) -> None:
        """The foot of the picture says it from now on."""
        self._signals += 1

    def disk_space(self, space: DiskSpace) -> None:
        """The picture says it as long as it holds."""
        self._space = space

    def outage(self, outage: EngineOutage) -> None:
        """The picture says it until it was not told for a while."""
        self._outage, self._outage_until = outage_words(outage), time.monotonic() + OUTAGE_SECONDS

    def look(self, progress: JobsProgress) -> None:
        """Draw."""
        self._heads.look(progress.snapshots)
        self._live.update(self.picture(progress), refresh=True)

    def close(self) -> None:
        """Remove the bars; the summary follows."""
        self._live.update(Text(), refresh=True)
        self._live.stop()

    def picture(self, progress: JobsProgress) -> Group:
        """The rows of this moment."""
        snapshots = progress.snapshots
        rows = rows_of(snapshots)
        shown = [r for r in rows if not r.over and (r.active or r.done)]
        lines = [self._row(row) for row in shown]
        lines += (
            [self._row(total_of(snapshots, progress.remaining), last=True)] if rows else [self._reading(len(snapshots))]
        )
        if not self._space.enough:
            lines.append(self._screen.cropped((space_words(self._space), NOW)))
        if time.monotonic() < self._outage_until:
            lines.append(self._screen.cropped((self._outage, NOW)))
        lines.append(self._foot(rows, snapshots))
        return Group(*lines)

    def _row(self, row: Row, *, last: bool = False) -> Text:
        left = time_range(row.remaining) if last or row.remaining else ""
        count = f"{row.done}/{row.total}"
        parts: list[Part] = [f"{row.name:<11} ", *bar(row, utf8=self._screen.utf8)]
        return self._screen.cropped(*parts, f"  {count:>9}  {speed_factor(row.speed):>6}  {left:>11}")

    def _reading(self, films: int) -> Text:
        return self._screen.cropped((f"reading {plural(films, 'video')}", NOW))

    def _foot(self, rows: Sequence[Row], snapshots: Sequence[JobProgress]) -> Text:
        films = sum(s.job.state in FINAL for s in snapshots)
        count = f"{films} of {len(snapshots)} videos, " if len(snapshots) > 1 else ""
        dead = sum(s.job.counts.dead for s in snapshots)
        failed: list[Part] = [(f"{dead} failed   ", TROUBLE)] if dead else []
        last: Part = (stopping(self._signals), NOW) if self._signals else (KEEPS, DONE)
        room = self._screen.width - len(count) - len(last[0]) - (len(failed[0][0]) if failed else 0)
        return self._screen.cropped((count + _over([r.name for r in rows if r.over], room), DONE), *failed, last)


class Plain(Watcher):
    """For a pipe or a log: a header per film and a line per finished stage."""

    def __init__(self, session: Session, expect: Expect) -> None:
        self._session, self._ended, self._signals = session, Ended(), 0
        self._outages = Outages(session)
        self._heads = Heads(session.remark, expect)

    def stop(self) -> None:
        """Say what is done about it."""
        self._signals += 1
        self._session.remark(stopping(self._signals))

    def disk_space(self, space: DiskSpace) -> None:
        """Say so."""
        report_space(self._session, space)

    def outage(self, outage: EngineOutage) -> None:
        """Say so, once."""
        self._outages.report(outage)

    def look(self, progress: JobsProgress) -> None:
        """Print what ended since the last snapshot."""
        snapshots = progress.snapshots
        self._heads.look(snapshots)
        for snapshot in snapshots if self._session.progress else ():
            name = f"{snapshot.job.name}: " if len(snapshots) > 1 else ""
            for row in self._ended.look(snapshot):
                end = f"{row.done}/{row.total}  {speed_factor(row.speed)}"
                self._session.remark(f"{name}{row.name} done, {end}".rstrip())


class Lines(Watcher):
    """JSON lines: a status per running stage at most once a second, a stage when it ends."""

    def __init__(self, session: Session) -> None:
        self._session, self._ended, self._last = session, Ended(), 0.0
        self._outages = Outages(session)

    def begin(self, films: int) -> None:
        """So many videos."""
        self._session.message("status", stage="probe", films=films)

    def disk_space(self, space: DiskSpace) -> None:
        """A status that belongs to no job."""
        report_space(self._session, space)

    def outage(self, outage: EngineOutage) -> None:
        """A status that belongs to no job, once."""
        self._outages.report(outage)

    def look(self, progress: JobsProgress) -> None:
        """Print each running stage of each job."""
        snapshots = progress.snapshots
        for snapshot in snapshots:
            for row in self._ended.look(snapshot):
                self._session.message("stage", **_line(snapshot, row))
        now = time.monotonic()
        if not self._session.progress or now - self._last < STATUS_SECONDS:
            return
        self._last = now
        for snapshot in snapshots:
            rows = rows_of([snapshot])
            shown = (
                [*(r for r in rows if r.active), total_of([snapshot], snapshot.remaining)]
                if rows
                else [Row("probe", 0, 1, 0.0, 1)]
            )
            for row in shown:
                self._session.message("status", **_line(snapshot, row))


class Heads:
    """Prints a header for each video once its plan is known, with the estimate where there is one."""

    def __init__(self, say: Callable[..., None], expect: Expect, room: int = 0, most: int = 0) -> None:
        """`room` is the cells for a name, `most` the videos that get a line each (0 = no limit)."""
        self._say, self._expect = say, expect
        self._told: set[str] = set()
        self._room, self._most = room, most

    def look(self, snapshots: Sequence[JobProgress]) -> None:
        """A line for each film whose plan is new."""
        for snapshot in snapshots:
            if snapshot.job.id not in self._told and facts_of(snapshot.job) and snapshot.stages:
                self._told.add(snapshot.job.id)
                if not self._most or len(snapshots) <= self._most:
                    self._tell(snapshot, alone=len(snapshots) == 1)

    def _tell(self, snapshot: JobProgress, *, alone: bool) -> None:
        expected = self._expect(snapshot)
        chunks = plural(max(s.total for s in snapshot.stages), "chunk")
        words = f"{header(snapshot.job, self._room)}  {recipe_of(snapshot.job)}, {chunks}"
        if not expected:
            self._say(words)
        elif alone:
            self._say(words)
            self._say((f"estimate {time_range(expected)} (9 of 10 runs on this machine)", DONE))
        else:
            self._say(words, (f", {time_range(expected)}", DONE))


class Ended:
    """Finds the stages of a video that ended since the last snapshot."""

    def __init__(self) -> None:
        self._over: dict[str, set[str]] = {}

    def look(self, snapshot: JobProgress) -> list[Row]:
        """The stages that ended; those that were done at the first snapshot are left out."""
        over = [row for row in rows_of([snapshot]) if row.over]
        names = {row.name for row in over}
        before = self._over.get(snapshot.job.id, names)
        self._over[snapshot.job.id] = names
        return [row for row in over if row.name not in before]


def _over(names: Sequence[str], room: int) -> str:
    """The finished stages: as many names as fit, and how many more."""
    for shown in range(len(names), 0, -1):
        rest = f" and {len(names) - shown} more" if shown < len(names) else ""
        words = f"done: {' '.join(names[:shown])}{rest}   "
        if len(words) <= room:
            return words
    return ""


def _sum(ranges: Sequence[Range | None]) -> Range | None:
    """All together; unknown if one is."""
    known = [r for r in ranges if r is not None]
    return (sum(r[0] for r in known), sum(r[1] for r in known)) if known and len(known) == len(ranges) else None


def _line(snapshot: JobProgress, row: Row) -> dict[str, object]:
    left = row.remaining
    return {
        "job": snapshot.job.id,
        "name": snapshot.job.name,
        "stage": row.name,
        "chunks_done": row.done,
        "chunks_total": row.total,
        "percent_done": round((row.done + row.running) / max(1, row.total), 4),
        "seconds_elapsed": round(snapshot.elapsed, 1),
        "seconds_remaining": [round(left[0], 1), round(left[1], 1)] if left else None,
        "speed_x": round(row.speed, 2) if row.speed else None,
        "errors": snapshot.job.counts.dead,
    }


def space_words(space: DiskSpace) -> str:
    """How much there is, how much there has to be, and that nothing needs to be done here."""
    if space.enough:
        return "disk space is available again: continuing"
    return f"disk nearly full: {size(space.free)} free, {size(space.reserve)} kept free; continues when there is space"


def report_space(session: Session, space: DiskSpace) -> None:
    """A line for people; for programs a status that belongs to no job."""
    counted = {"bytes_free": space.free, "bytes_kept_free": space.reserve}
    session.message("status", stage="room", enough=space.enough, **counted, message=space_words(space))
    session.remark((space_words(space), NOW))


def outage_words(outage: EngineOutage) -> str:
    """What does not answer, and that nothing is lost."""
    return f"{outage.message}; that work waits and continues automatically"


class Outages:
    """Tells of models that cannot be asked: once, and again if it is told after a while of silence."""

    def __init__(self, session: Session) -> None:
        self._session, self._over = session, 0.0

    def report(self, outage: EngineOutage) -> None:
        """A line for people; for programs a status that belongs to no job."""
        if time.monotonic() >= self._over:
            self._session.message("status", stage="inference", message=outage_words(outage))
            self._session.remark((outage_words(outage), NOW))
        self._over = time.monotonic() + OUTAGE_SECONDS
