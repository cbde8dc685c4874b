"""A slot that imports nothing of rushes: it says what its task's options tell it to say. Run by worker_kit."""

import json
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


def wait_for(gate: str) -> None:
    while Path(gate).exists():
        time.sleep(0.005)


def answer(spec: dict[str, Any]) -> dict[str, Any]:
    options = spec["options"]
    for line in options.get("print", []):
        print(line, flush=True)
    if options.get("say_pid"):
        print(os.getpid(), flush=True)
    if "gate" in options:
        wait_for(options["gate"])
    if "scratch" in options:
        Path(options["scratch"], f"{os.getpid()}-left").mkdir(parents=True)
    if options.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if "broke" in options:
        told = {"hint": "", "verdict": "may work next time", "final": False, "counts": True}
        told["replace"] = options.get("replace", False)
        return {"type": "failed", "kind": "TryAgain", "message": options["broke"], **told}
    return {"type": "finished", "seconds": 0.0}


connection = Connection(int(sys.argv[-1]))
time.sleep(float(os.environ.get("TOY_START", "0")))
while True:
    try:
        request = json.loads(connection.recv_bytes())
    except EOFError:
        break
    spec = json.loads(request["spec"])
    os.write(2, b"\n\x1e the attempt begins\n")
    message = answer(spec)
    os.write(2, b"\n\x1e the attempt is over\n")
    connection.send_bytes(json.dumps(message).encode())
    if "late" in spec["options"]:
        os.write(2, spec["options"]["late"].encode() + b"\n")
