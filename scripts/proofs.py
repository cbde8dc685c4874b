"""Runs the programs of benchmarks/ and proof/ and keeps what they print in docs/proof.md, with commit and machine."""

import argparse
import os
import platform
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "proof.md"
PARTS_OF_OTHERS = {"proof.drive", "proof.zygote"}  # started by tests and proofs with arguments of their own
INTRODUCTION = """# Proof

What `scripts/prove` printed, word for word. Each part names the commit, the machine and the seed it was run with;
`scripts/prove NAME` runs one part again.
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """One program, and what it printed."""

    name: str
    command: tuple[str, ...]
    output: str
    seconds: float
    code: int


def programs() -> list[str]:
    """The modules that can be run by themselves, benchmarks first."""
    files = [*sorted(ROOT.glob("benchmarks/*.py")), *sorted(ROOT.glob("proof/*.py"))]
    names = [f"{f.parent.name}.{f.stem}" for f in files if 'if __name__ == "__main__"' in f.read_text("utf-8")]
    return [name for name in names if name not in PARTS_OF_OTHERS]


def run(name: str, seed: int) -> Ran:
    """Run one program in view; its figures are what it writes to stdout."""
    text = (ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8")
    command = (name, *(("--seed", str(seed)) if '"--seed"' in text else ()))
    print(f"== {' '.join(command)}", flush=True)
    began, lines = time.monotonic(), []
    with subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return Ran(name, command, "".join(lines), time.monotonic() - began, process.returncode)


def section(ran: Ran) -> str:
    """The part of the page that tells of one program."""
    verdict = "held" if ran.code == 0 else f"BROKEN (exit {ran.code})"
    return (
        f"## {ran.name}\n\n{verdict}, {ran.seconds:.0f} s, commit {commit()}, {machine()}\n\n"
        f"```\n$ python -m {' '.join(ran.command)}\n{without_places(ran.output).rstrip()}\n```\n"
    )


def commit() -> str:
    """The commit that was run, marked when the tree was changed since."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def machine() -> str:
    """Processor, cores, memory, system and Python, without its name."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", info.read_text("utf-8")) if info.exists() else None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processor = model[1] if model else platform.machine()
    return (
        f"{processor}, {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def without_places(text: str) -> str:
    """The text without the names of this machine's folders."""
    return text.replace(f"{ROOT}/", "").replace(str(ROOT), ".").replace(str(Path.home()), "~")


def parts(page: str) -> dict[str, str]:
    """The sections of the page by name."""
    found = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {part.splitlines()[0].removeprefix("## "): part.rstrip() + "\n" for part in found}


def main() -> int:
    """Run what was asked for, write the page after each; 1 if anything did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="ledger, chaos, ...; everything unless named")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311 - any number will do
    asked = parser.parse_args()
    chosen = [p for p in programs() if not asked.names or {p, p.split(".")[1]} & set(asked.names)]
    kept = parts(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    broken = []
    for name in chosen:
        ran = run(name, asked.seed)
        kept[name] = section(ran)
        PAGE.write_text("\n".join([INTRODUCTION, *(kept[n] for n in programs() if n in kept)]), "utf-8")
        broken += [name] if ran.code else []
    print(f"{len(chosen) - len(broken)} held, {len(broken)} broken{': ' if broken else ''}{', '.join(broken)}")
    return int(bool(broken) or not chosen)


if __name__ == "__main__":
    sys.exit(main())
