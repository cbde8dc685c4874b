"""Tests and seconds of each suite, from pytest's report, and the closing line that says how many passed."""

import sys
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree


def suite_of(case: ElementTree.Element) -> str:
    """The folder under tests/ that a case belongs to."""
    parts = case.get("classname", "").split(".")
    return parts[1] if len(parts) > 2 else parts[0]


def outcome_of(case: ElementTree.Element) -> str:
    """passed, failed or skipped; an error of a fixture is a failure."""
    found = {child.tag for child in case}
    if found & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in found else "passed"


def main(report: Path) -> int:
    """Print a line for each suite and `N passed, N failed`; 1 if anything failed or nothing ran."""
    if not report.stat().st_size:
        print("no test was run")
        return 1
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))  # noqa: S314 - our own file
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in cases:
        seconds[suite_of(case)] += float(case.get("time", 0))
    tests, outcomes = Counter(map(suite_of, cases)), Counter(map(outcome_of, cases))
    for suite, spent in sorted(seconds.items()):
        print(f"{suite:<12} {spent:6.1f} s  {tests[suite]} tests")
    skipped = f", {outcomes['skipped']} skipped" if outcomes["skipped"] else ""
    print(f"{outcomes['passed']} passed, {outcomes['failed']} failed{skipped}")
    return int(not outcomes["passed"] or outcomes["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
