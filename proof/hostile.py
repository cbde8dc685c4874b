"""Hostile, broken and odd inputs: each is refused with a reason, or its frames are right, and it reaches nothing.

Then hostile requests to the HTTP API (proof/hostile_api.py): none may be answered with a 500.

Every input is worked on in a process of its own, which may open no foreign file, connect to nobody, write nothing
outside its folder, and need at most 1 GiB and 30 s of processor time.

python -m proof.hostile --seed 1
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.hostile.corpus import corpus
from tests.hostile.trial import Verdict, trap, try_case

from proof import hostile_api

WORDS = {"foreign": "foreign files opened", "connected": "connections", "wrote": "files written outside"}

WORDS = {"foreign": "foreign files opened", "connected": "connections", "wrote": "files written outside"}


def main(seed: int, only: str) -> int:
    """Try all of it; prints the figures, and 1 if anything was wrong."""
    cases = [case for case in corpus(seed) if only in case.name]
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="hostile-") as top, trap(Path(top) / "private") as watched:
        for number, case in enumerate(cases):
            folder = Path(top) / str(number)
            verdicts.append(try_case(case, folder, watched))
            shutil.rmtree(folder)
            if verdicts[-1].wrong or only:
                print(f"{verdicts[-1]}", flush=True)
    kinds = Counter("right frames" if v.outcome.endswith("frames") else "refused with a reason" for v in verdicts)
    wrong = [v for v in verdicts if v.wrong]
    slowest, largest = max(verdicts, key=lambda v: v.seconds), max(verdicts, key=lambda v: v.memory)
    print(f"{len(verdicts)} inputs, {len(wrong)} wrong: {dict(kinds)}")
    for bad, words in WORDS.items():
        print(f"{sum(any(bad in said for said in v.wrong) for v in verdicts)} {words}")
    print(f"most time {slowest.seconds:.1f} s ({slowest.name}), most memory {largest.memory} MiB ({largest.name})")
    print(f"seed {seed}")
    return int(bool(wrong))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=20_000, help="to the HTTP API, after the inputs")
    parser.add_argument("--only", default="", help="inputs whose names contain this")
    asked = parser.parse_args()
    broken = main(asked.seed, asked.only)
    if not asked.only:
        broken |= hostile_api.main(asked.requests, asked.seed)
    sys.exit(broken)
