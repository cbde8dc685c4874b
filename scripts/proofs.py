"""Runs the programs of benchmarks/ and proof/ and writes what they print to docs/proof.md, with commit and load."""

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
# Started by tests and other proofs with arguments of their own.
PARTS_OF_OTHERS = {"proof.film_runner", "proof.zygote", "proof.hostile_api"}
VARIANTS: dict[str, tuple[tuple[str, ...], ...]] = {  # programs that are run more than once, with these arguments
    "proof.remote_workers": (("--setup", "sqlite"), ("--setup", "postgres+valkey+s3", "--kills", "200")),
    "benchmarks.load": (
        ("--setup", "sqlite"),
        ("--setup", "postgres"),
        ("--setup", "aws", "--workers", "50", "--streams", "100", "--jobs", "100"),
    ),
    "proof.chaos": (
        ("--setup", "sqlite"),
        ("--setup", "postgres", "--kills", "500"),
        ("--setup", "postgres+valkey+s3", "--kills", "500"),
        ("--setup", "aws", "--kills", "500"),
        ("--setup", "bucket", "--kills", "500"),
        *(("--setup", setup, "--kills", "200", "--new-disk") for setup in ("postgres+s3", "postgres+valkey+s3", "aws")),
    ),
    "proof.real_recipe": tuple(
        ("--setup", setup) for setup in ("sqlite", "postgres", "postgres+valkey+s3", "aws", "bucket")
    ),
}
INTRODUCTION = """# Proof

What `scripts/prove` printed, and nothing else: each section is one command with its output, the commit, the machine
and the load average before it began. `scripts/prove NAME` runs one again. What the figures mean: [figures](figures.md).

The kills of `proof.chaos` run on toy stages, so that thousands of them fit into an hour. `proof.real_recipe` kills
the real ones at random moments; `tests/acceptance/test_kills.py`, run by `scripts/test`, kills them at named ones.
`aws` is an emulator of DynamoDB, SQS and S3.
"""


@dataclass(frozen=True, slots=True)
class ProofRun:
    """One command, and what it printed."""

    command: tuple[str, ...]
    load: float
    output: str
    seconds: float
    code: int


def programs() -> list[str]:
    """The modules that can be run by themselves, benchmarks first."""
    files = [*sorted(ROOT.glob("benchmarks/*.py")), *sorted(ROOT.glob("proof/*.py"))]
    names = [f"{f.parent.name}.{f.stem}" for f in files if 'if __name__ == "__main__"' in f.read_text("utf-8")]
    return [name for name in names if name not in PARTS_OF_OTHERS]


def commands(name: str, names: list[str], seed: int) -> list[tuple[str, ...]]:
    """The commands of a program that were asked for: as they were named with arguments, or one for each variant."""
    own = [tuple(words[1:]) for words in map(str.split, names) if words[0] == name and len(words) > 1]
    if not own and names and not {name, name.split(".")[1]} & set(names):
        return []
    text = (ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8")
    seeded = ("--seed", str(seed)) if '"--seed"' in text else ()
    return [(name, *arguments, *seeded) for arguments in own or VARIANTS.get(name, ((),))]


def run(command: tuple[str, ...]) -> ProofRun:
    """Run one command in view; its figures are what it writes to stdout."""
    print(f"== {' '.join(command)}", flush=True)
    load, began, lines = os.getloadavg()[0], time.monotonic(), []
    with subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return ProofRun(command, load, "".join(lines), time.monotonic() - began, process.returncode)


def title(command: tuple[str, ...]) -> str:
    """The heading of a command's section: without its seed, so that another seed takes its place."""
    return re.sub(r" --seed \d+", "", " ".join(command))


def section(ran: ProofRun) -> str:
    """The part of the page that tells of one command."""
    verdict = "held" if ran.code == 0 else f"BROKEN (exit {ran.code})"
    return (
        f"## {title(ran.command)}\n\n"
        f"{verdict}, {ran.seconds:.0f} s, commit {commit()}, load {ran.load:.1f}, {machine()}\n\n"
        f"```\n$ python -m {' '.join(ran.command)}\n{without_paths(ran.output).rstrip()}\n```\n"
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


def without_paths(text: str) -> str:
    """The text without the names of this machine's folders."""
    return text.replace(f"{ROOT}/", "").replace(str(ROOT), ".").replace(str(Path.home()), "~")


def parts(page: str) -> dict[str, str]:
    """The sections of the page by name."""
    found = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {part.splitlines()[0].removeprefix("## "): part.rstrip() + "\n" for part in found}


def main() -> int:
    """Run what was asked for, write the page after each; 1 if anything did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    told = "ledger, chaos, ...; or with arguments of its own ('proof.chaos --setup aws'); everything unless named"
    parser.add_argument("names", nargs="*", metavar="NAME", help=told)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311 - any number will do
    options = parser.parse_args()
    chosen = [command for name in programs() for command in commands(name, options.names, options.seed)]
    sections = parts(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    order = [title(command) for name in programs() for command in commands(name, [], options.seed)]
    broken, count = [], 0
    for command in chosen:
        ran = run(command)
        sections[title(command)] = section(ran)
        known = [*(n for n in order if n in sections), *(n for n in sections if n not in order)]
        PAGE.write_text("\n".join([INTRODUCTION, *(sections[n] for n in known)]), "utf-8")
        count += 1
        broken += [title(command)] if ran.code else []
    print(f"{count - len(broken)} held, {len(broken)} broken{': ' if broken else ''}{', '.join(broken)}")
    return int(bool(broken) or not count)


if __name__ == "__main__":
    sys.exit(main())
