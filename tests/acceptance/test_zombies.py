"""A worker that was frozen while others went on: it wakes up, writes nothing, and goes on as a new one."""

import contextlib
import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import psutil
import pytest
from proof.audit import audit
from proof.kills import TOYS, Film, command, differences, environment, undisturbed

from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.home import Home
from rushes.ledger.sqlite import SqliteLedger
from rushes.wiring import open_home
from rushes.wiring.workers import worker
from tests.acceptance.conftest import DEADLINE, SIGHT, wait_for


def signal_tree(process: subprocess.Popen[bytes], number: int) -> None:
    for one in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(one.pid, number)


def freeze(process: subprocess.Popen[bytes], home: Path) -> None:
    """Stop the whole tree, but not while it writes: as long as it is frozen nobody else could."""

    def still() -> bool:
        signal_tree(process, signal.SIGSTOP)
        return _all_stopped(psutil.Process(process.pid))

    def stopped() -> bool:
        wait_for(still, "it never stopped")
        if all(map(_can_be_written, home.glob("*.sqlite"))):
            return True
        signal_tree(process, signal.SIGCONT)
        return False

    wait_for(stopped, "it never stopped writing")


def _all_stopped(process: psutil.Process) -> bool:
    return all(map(_stands_still, (process, *process.children(recursive=True))))


def _stands_still(process: psutil.Process) -> bool:
    """Stopped, or gone by itself just before."""
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _can_be_written(file: Path) -> bool:
    with contextlib.closing(sqlite3.connect(file, timeout=0.0, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        db.execute("ROLLBACK")
        return True


def successor(home: Path) -> Home:
    """The same home seen a minute later: every lease of the frozen worker is over."""
    opened = open_home(home, create=False)
    opened.__dict__["ledger"] = SqliteLedger(home / "ledger.sqlite", shift=60.0)
    return opened


@pytest.mark.parametrize(
    ("drawn", "only", "stage"),
    [
        ("toy_film", "toy_join", "toy_chunk.1"),
        ("toy_film", "toy_join", "toy_join.None"),
        ("seen_film", SIGHT, "toy_chunk.1"),
    ],
)
def test_a_frozen_worker_wakes_up_to_refusals(
    drawn: str, only: str, stage: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    film = Film(request.getfixturevalue(drawn), only)
    (tmp_path / "reference").mkdir()
    reference, _ = undisturbed(tmp_path / "reference", film)
    folder = tmp_path / "run"
    folder.mkdir()
    gate = folder / f"gate.{stage}"
    gate.touch()
    env = environment(folder, TOY_GATE=str(folder / "gate"))
    zombie = subprocess.Popen(command(folder, film), env=env, stderr=subprocess.PIPE)
    try:
        begun = f"begin {stage.replace('.', ' ')}"
        witness = folder / "witness"
        wait_for(lambda: witness.exists() and begun in witness.read_text(), "the task never began")
        freeze(zombie, folder / "home")
        gate.unlink()

        for name in ("PYTHONPATH", "TOY_WITNESS", "RUSHES_SANDBOX"):
            monkeypatch.setenv(name, env[name])
        monkeypatch.syspath_prepend(str(TOYS))
        home = successor(folder / "home")
        (job,) = [j for j in home.ledger.jobs("me").rows if j.recipe == "searchable"]
        worker(home, slots=2, until=lambda _shell: home.ledger.job(job.id).state is JobState.COMPLETED).run()
        before = home.ledger.events(job.id)
        assert any(e.type is EventType.LOST for e in before)
        home.close()

        signal_tree(zombie, signal.SIGCONT)
        _, errors = zombie.communicate(timeout=DEADLINE)
    finally:
        if zombie.poll() is None:
            signal_tree(zombie, signal.SIGKILL)
            zombie.communicate()

    found = audit(folder / "home", witness)
    home = open_home(folder / "home", create=False)
    assert b"refused: the task is lost" in errors or b"this worker lost its lease" in errors
    assert home.ledger.events(job.id) == before, "the zombie changed the job's history"
    home.close()
    assert found.bad == ()
    assert differences(reference.outputs, found.outputs) == []
