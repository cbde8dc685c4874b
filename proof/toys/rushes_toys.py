"""Toy stages that leave a line in a witness file outside the ledger, and poison stages that misbehave on purpose."""

import hashlib
import os
import signal
import time
from pathlib import Path

from proof.peers import body

from rushes.domain.errors import NeverWorks, TryAgain
from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work


def witness(what: str, work: Work) -> None:
    """One line, appended in one write: what happened, to which task, in which process."""
    for name, line in (
        (os.environ.get("TOY_WITNESS"), f"{what} {work.stage} {work.chunk} {work.video} {os.getpid()}\n"),
        (os.environ.get("RUSHES_CRASH_TRACE"), f"{os.getpid()} {what}\n"),  # so that the trace tells who was at work
    ):
        if name:
            fd = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(fd, line.encode())
            os.close(fd)


def hold(work: Work) -> None:
    """Take as long as asked, and wait at a named gate until a test opens it (removes the file)."""
    time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
    gate = os.environ.get("TOY_GATE")
    while gate and Path(f"{gate}.{work.stage}.{work.chunk}").exists():
        time.sleep(0.01)


class ToyChunk:
    """Bytes that depend on the chunk alone."""

    spec = StageSpec("toy_chunk", 1, Scope.CHUNK, ("piece", "mark"), ("probe",), options={"size": 2000})

    def run(self, work: Work) -> None:
        """Make a piece and a mark."""
        witness("begin", work)
        hold(work)
        assert work.span is not None
        seed = f"{work.facts.sha256}{work.span.to_json()}".encode()
        data = b"".join(
            hashlib.sha256(seed + bytes([n % 256])).digest() for n in range(int(work.options["size"]) // 32)
        )
        if "piece" in work.wanted:
            work.save("piece", "piece.bin", data, "application/octet-stream")
        if "mark" in work.wanted:
            work.save_json("mark", "mark.json", {"chunk": work.chunk, "sha256": hashlib.sha256(data).hexdigest()})
        witness("end", work)


class ToyJoin:
    """All pieces in order, under a published name."""

    spec = StageSpec("toy_join", 1, Scope.VIDEO, ("whole",), ("probe", "toy_chunk"))

    def run(self, work: Work) -> None:
        """Join."""
        witness("begin", work)
        hold(work)
        data = b"".join(i.bytes("piece.bin") for i in work.inputs("toy_chunk", "piece"))
        work.save("whole", "whole.bin", data, "application/octet-stream", f"toys/{work.video}/whole.bin")
        witness("end", work)


class Poison:
    """Misbehaves as its option says: the first word on chunk 1, the second on chunk 2; other chunks are good."""

    spec = StageSpec("poison", 1, Scope.CHUNK, ("piece",), ("probe",), options={"how": "fine"})

    def run(self, work: Work) -> None:
        """Do it."""
        for chunk, how in enumerate(str(work.options["how"]).split(), 1):
            if work.chunk == chunk:
                getattr(self, f"_{how}")(work)
        work.save_json("piece", "piece.json", {"chunk": work.chunk})

    def _fine(self, work: Work) -> None:
        """Nothing."""

    def _segfault(self, work: Work) -> None:
        work.log("about to crash")
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(60)

    def _exit0(self, work: Work) -> None:
        work.log("leaving early")
        os._exit(0)

    def _leak(self, work: Work) -> None:
        kept = []
        while True:
            kept.append(bytearray(16 << 20))
            kept[-1][::4096] = b"x" * len(kept[-1][::4096])
            time.sleep(0.02)

    def _hang(self, work: Work) -> None:
        while True:
            time.sleep(60)

    def _stubborn(self, work: Work) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._hang(work)

    def _fork(self, work: Work) -> None:
        for _ in range(2):
            os.fork()  # four in all: a slot may not start programs
        self._hang(work)

    def _flood(self, work: Work) -> None:
        for n in range(200_000):
            print(f"line {n} " + "x" * 60)
        raise NeverWorks("flooded the log", "Do not print so much.")

    def _bug(self, work: Work) -> None:
        raise ZeroDivisionError("a bug in the stage")

    def _never(self, work: Work) -> None:
        raise NeverWorks("this will never work", "Change the input.")

    def _later(self, work: Work) -> None:
        raise TryAgain("not yet")


class FaultChunk:
    """The chunk of proof/peers/body.py, its file saved as a stage saves it."""

    spec = StageSpec("fault_chunk", 1, Scope.CHUNK, ("part",), ("probe",))

    def run(self, work: Work) -> None:
        """Half a second between two witness lines."""
        folder = Path(os.environ["FAULTS_FOLDER"])
        body.witness(folder, f"begin {work.chunk}")
        time.sleep(body.SECONDS)
        work.save("part", "part.txt", f"{work.chunk}\n".encode(), "text/plain")
        body.witness(folder, f"end {work.chunk}")


class FaultJoin:
    """Counts the parts that are there."""

    spec = StageSpec("fault_join", 1, Scope.VIDEO, ("whole",), ("probe", "fault_chunk"))

    def run(self, work: Work) -> None:
        """One witness line."""
        parts = [i.bytes("part.txt") for i in work.inputs("fault_chunk", "part")]
        body.witness(Path(os.environ["FAULTS_FOLDER"]), f"join {len(parts)}")
        work.save("whole", "whole.txt", b"".join(parts), "text/plain")


toy_chunk, toy_join, poison = ToyChunk(), ToyJoin(), Poison()
fault_chunk, fault_join = FaultChunk(), FaultJoin()
