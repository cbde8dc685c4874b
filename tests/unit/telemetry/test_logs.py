"""Logs: files that stay short while processes write to them, and outages that are said once."""

import json
import logging
import subprocess
import sys
from pathlib import Path

from rushes.telemetry import JsonLines, Outage, RotatingLog, shorten_log
from tests.log_lines import logged

WRITER = """
import logging, sys
from pathlib import Path
from rushes.telemetry import RotatingLog
handler = RotatingLog(Path(sys.argv[1]), 20_000)
for n in range(300):
    handler.handle(logging.LogRecord("rushes", 20, "", 1, f"{sys.argv[2]} {n:04d} {'x' * 40}", None, None))
"""


def test_a_log_is_moved_aside_while_it_is_written(tmp_path: Path) -> None:
    handler = RotatingLog(tmp_path / "rushes.log", 1000)
    handler.setFormatter(JsonLines())
    for n in range(100):
        handler.handle(logging.LogRecord("rushes", 20, "", 1, f"line {n}", None, None))
    handler.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["rushes.1.log", "rushes.log"]
    assert all(file.stat().st_size < 1200 for file in files)
    assert json.loads(files[1].read_text().splitlines()[-1])["message"] == "line 99"


def test_several_processes_write_one_log_and_follow_when_it_is_moved(tmp_path: Path) -> None:
    log = tmp_path / "rushes.log"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(log), name]) for name in "abc"]
    assert [writer.wait(240) for writer in writers] == [0, 0, 0]
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["rushes.1.log", "rushes.log"]
    assert all(file.stat().st_size < 21_000 for file in files)
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert all(len(line) == len("a 0000 ") + 40 for line in lines), "lines of two processes were mixed"
    assert {line[0] for line in log.read_text().splitlines()} <= set("abc")
    for name in "abc":  # of each the last ones, in order, without a gap
        mine = [int(line.split()[1]) for line in lines if line[0] == name]
        assert mine == list(range(mine[0], mine[0] + len(mine))) if mine else True


def test_a_log_that_another_program_appends_to_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "worker-1.log"
    with log.open("ab", buffering=0) as out:
        out.write(b"a" * 2000 + b"\n")
        shorten_log(log, 3000)
        assert log.stat().st_size == 2001
        shorten_log(log, 2000)
        out.write(b"after\n")
    assert log.read_bytes() == b"after\n"
    assert (tmp_path / "worker-1.1.log").stat().st_size == 2001


def test_an_outage_is_said_once_and_its_end_too() -> None:
    with logged() as lines:
        outage = Outage("hints are unavailable")
        outage.ended()
        for _ in range(3):
            outage.began("no route", worker="w")
        outage.ended()
        outage.ended()
        outage.began("again")
    said = [line["message"] for line in lines.all()]
    assert said == ["hints are unavailable: no route", "over after 0 s: hints are unavailable",
                    "hints are unavailable: again"]  # fmt: skip
    assert lines.all()[0]["worker"] == "w"
