"""A worker says what it takes, what it does and what it did: to people, to logs and to programs."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rushes.domain.errors import StoreAway
from rushes.domain.task import Failure, Finish, Lease
from rushes.library import Library
from rushes.surfaces.cli.main import main
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views import worker_view as view_module
from rushes.surfaces.cli.views.worker_view import WorkerView, outcome_of, task_summary
from rushes.wiring.workers import worker
from rushes.worker.commands import Complete, Fail, GiveBack, OutboxEntry
from rushes.worker.core import Holding, Limits, State
from rushes.worker.inputs import OutboxEntryWritten, Tick
from tests.unit.cli_worker import films

Invoke = Callable[..., Result]


def lease(stage: str = "develop", chunk: int | None = 3) -> Lease:
    return Lease(f"job_a.{stage}.{chunk}", 7, "job_a", stage, chunk, "cpu", "{}", 0, 0)


BROKEN = Failure("SlotDied", "ended by \x1b[31msignal 11", "Look.", "may work next time")
LETTERS: list[OutboxEntry] = [
    Complete(lease(), Finish("t", 7, seconds=4.21)),
    Complete(lease("audio", None), Finish("t", 7, adopted=True)),
    Fail(lease(), BROKEN, 61.0),
    Fail(lease(), BROKEN, None),
    GiveBack(lease(), "drained"),
]


@pytest.fixture
def rushes(tmp_path: Path) -> Invoke:
    (tmp_path / "home").mkdir()
    return lambda *args: CliRunner().invoke(main, ["--home", str(tmp_path / "home"), *args])


def watched(session: Session, state: State | None = None) -> WorkerView:
    return WorkerView(session, lambda _job: "fi\x1blm.mp4", lambda: state or State(Limits(2)))


def tell(session: Session) -> WorkerView:
    view = watched(session)
    view.start()
    for entry in LETTERS:
        view.on_input(OutboxEntryWritten(entry))
    view.on_input(Tick())
    view.close()
    return view


def test_a_reader_that_sleeps_does_not_keep_a_worker_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, wakes = threading.Event(), threading.Event()
    monkeypatch.setattr(view_module, "WAITING", 2)
    monkeypatch.setattr(view_module, "PATIENCE_SECONDS", 0.01, raising=False)

    def sleep(*_words: object, **_fields: object) -> None:
        reads.set()
        wakes.wait()

    monkeypatch.setattr(Session, "message", sleep)
    view = watched(Session(json=True))
    view.start()
    view.on_input(OutboxEntryWritten(LETTERS[0]))
    assert reads.wait(30.0)
    for entry in LETTERS:
        view.on_input(OutboxEntryWritten(entry))
    closing = threading.Thread(target=view.close, daemon=True)
    closing.start()
    closing.join(30.0)
    ended = not closing.is_alive()
    wakes.set()
    view._box.put(None)  # else what is left is printed into the next test
    view._printer.join(30.0)
    assert ended


def test_every_letter_to_the_ledger_is_an_outcome_in_plain_words() -> None:
    assert [outcome_of(entry).word for entry in LETTERS] == ["done", "adopted", "failed", "dead", "given back"]
    assert outcome_of(LETTERS[2]).why.endswith("signal 11; next attempt in 1 min 1 s")
    assert outcome_of(LETTERS[3]).why.endswith("no more attempts")


def test_a_log_gets_one_clean_line_for_each_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    view = tell(Session())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "done        film.mp4  develop chunk 3  4.2 s",
        "adopted     film.mp4  audio",
        "failed      film.mp4  develop chunk 3  SlotDied: ended by [31msignal 11; next attempt in 1 min 1 s",
        "dead        film.mp4  develop chunk 3  SlotDied: ended by [31msignal 11; no more attempts",
        "given back  film.mp4  develop chunk 3  drained",
    ]
    assert task_summary(view).startswith("2 tasks done, 1 failed, 1 dead, 1 given back in ")


def test_programs_get_a_json_line_for_each_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Session(json=True))
    first, *_, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "message_type": "task",
        "level": "info",
        "outcome": "done",
        "seconds": 4.21,
        "why": "",
        "task": "job_a.develop.3",
        "job": "job_a",
        "stage": "develop",
        "chunk": 3,
        "name": "fi\x1blm.mp4",
        "attempt": 7,
    }
    assert (last["outcome"], last["why"]) == ("given back", "drained")


def test_a_terminal_shows_a_line_for_each_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    session.err.console._width = 80
    held = {"a": Holding(lease(), 1, 0.0, 0.45), "b": Holding(lease("clip", None), 2, 0.0)}
    state = State(Limits(2), held=MappingProxyType(held))
    monkeypatch.setattr("rushes.surfaces.cli.views.worker_view.time", SimpleNamespace(monotonic=lambda: 12.0))
    idle, develop, clip, foot = (str(line) for line in watched(session, state).picture().renderables)
    assert idle == " 1  idle"
    assert develop == " 2  develop     film.mp4                         chunk 3    45%        12 s"
    assert clip.split() == ["3", "clip", "film.mp4", "12", "s"]
    assert foot == "no tasks done in 0.0 s   Ctrl-C stops after the running chunks"


def test_a_store_that_is_away_does_not_keep_a_name_from_being_shown_later() -> None:
    answers: list[Any] = [StoreAway("busy"), "film.mp4"]

    def name_of(_job: str) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    view = WorkerView(Session(), name_of, lambda: State(Limits(1)))
    assert [view._name("job_a") for _ in range(3)] == ["job_a", "film.mp4", "film.mp4"]


def test_a_worker_says_what_it_takes_and_what_it_did(rushes: Invoke, tmp_path: Path) -> None:
    rushes("add", *(str(film) for film in films(tmp_path, 2)))
    shown = rushes("worker", "--until-idle", "--slots", "1", "--lanes", "cpu,gpu", "--drain-grace", "5", "--json")
    first, *tasks, last = (json.loads(line) for line in shown.stdout.splitlines())
    assert (first["message_type"], first["slots"], first["lanes"], first["drain_seconds"]) == (
        "worker",
        1,
        ["cpu", "gpu"],
        5,
    )
    assert sorted((t["name"], t["stage"], t["outcome"]) for t in tasks) == [
        ("film0.mp4", "probe", "dead"),
        ("film1.mp4", "probe", "dead"),
    ]
    assert (last["tasks"], last["code"], last["resumable"], shown.exit_code) == ({"dead": 2}, 3, False, 3)


def test_auto_takes_every_lane(rushes: Invoke) -> None:
    shown = rushes("worker", "--until-idle", "--slots", "1", "--lanes", "auto", "--json")
    assert set(json.loads(shown.stdout.splitlines()[0])["lanes"]) >= {"cpu", "gpu"}


@pytest.mark.parametrize(("mode", "lanes"), [("gpu", ["gpu"]), ("cpu", ["cpu"]), ("auto", ["cpu", "gpu"])])
def test_a_worker_takes_what_the_documents_variables_say(
    rushes: Invoke, monkeypatch: pytest.MonkeyPatch, mode: str, lanes: list[str]
) -> None:
    monkeypatch.setenv("GPU_MODE", mode)
    monkeypatch.setenv("ARQ_MAX_JOBS", "3")
    first = json.loads(rushes("worker", "--until-idle", "--json").stdout.splitlines()[0])
    assert (first["lanes"], first["slots"]) == (lanes, 3)


def test_auto_means_every_lane_in_a_program_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHES_LANES", "auto")
    with Library(tmp_path / "home") as library:
        assert worker(library.home, slots=1).state.limits.lanes == ("cpu", "gpu")


def test_a_worker_with_nothing_to_do_says_so(rushes: Invoke) -> None:
    shown = rushes("worker", "--until-idle", "--slots", "1")
    assert shown.stdout == ""
    assert "1 slot, lanes cpu, gpu" in shown.stderr.replace("\n", " ")
    assert "0 tasks done in" in shown.stderr
    assert "no work is left" in shown.stderr


@pytest.mark.parametrize("args", [["--lanes", "gup"], ["--slots", "0"], ["--slots", "many"], ["--drain-grace", "-1"]])
def test_what_a_worker_cannot_be_told_is_refused(rushes: Invoke, args: list[str]) -> None:
    assert rushes("worker", *args).exit_code == 2
