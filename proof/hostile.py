"""Hostile, broken and odd inputs: each is refused with a reason, or its frames are right, and it reaches nothing.

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
    print("0 foreign files opened, 0 connections, 0 files outside, unless said above")
    print(f"slowest {slowest.seconds:.1f} s ({slowest.name}), most memory {largest.memory} MiB ({largest.name})")
    print(f"seed {seed}")
    return int(bool(wrong))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="inputs whose names contain this")
    asked = parser.parse_args()
    sys.exit(main(asked.seed, asked.only))
