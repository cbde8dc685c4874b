"""Tests and seconds of each suite, cases of each document and backend, and the closing line: how many passed."""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

# The parameters by which tests name what they run on; all of it is promised by the test command.
BACKENDS = {
    "memory": "memory",
    "folder": "folder",
    "sqlite": "SQLite",
    "postgres18": "PostgreSQL 18",
    "postgres16": "PostgreSQL 16",
    "dynamodb": "DynamoDB",
    "poll": "polling",
    "notify": "PostgreSQL's NOTIFY",
    "redis": "Valkey",
    "sqs": "SQS",
    "ministack": "S3 on ministack",
    "ministack_s3": "S3 on ministack",
    "seaweed": "S3 on SeaweedFS",
    "seaweed_s3": "S3 on SeaweedFS",
    "postgres": "set-up PostgreSQL",
    "postgres+valkey+s3": "set-up PostgreSQL + Valkey + S3",
    "aws": "set-up DynamoDB + SQS + S3",
}
ON_BACKENDS = ("tests.contract.", "tests.property.", "tests.acceptance.test_setups", "tests.acceptance.test_fleet")
Case = ElementTree.Element


def suite_of(case: Case) -> str:
    """The folder under tests/ that a case belongs to."""
    parts = case.get("classname", "").split(".")
    return parts[1] if len(parts) > 2 else parts[0]


def outcome_of(case: Case) -> str:
    """passed, failed or skipped; an error of a fixture is a failure."""
    found = {child.tag for child in case}
    if found & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in found else "passed"


def backend_of(case: Case) -> str:
    """What a case ran on, "" if it names nothing."""
    if not case.get("classname", "").startswith(ON_BACKENDS):
        return ""
    words = case.get("name", "").partition("[")[2].rstrip("]").split("-")
    return next((BACKENDS[word] for word in words if word in BACKENDS), "")


def port_of(case: Case) -> str:
    """The contract that a case is of: ledger, records, blobs, ..."""
    return case.get("classname", "").rpartition(".test_")[2].partition("_")[0]


def backends(cases: Iterable[Case]) -> list[str]:
    """Print what ran on each backend; answers the names of those that were promised and not tried, or skipped."""
    ran: defaultdict[str, Counter[str]] = defaultdict(Counter)
    skipped: Counter[str] = Counter()
    for case in cases:
        if backend := backend_of(case):
            ran[backend][port_of(case)] += outcome_of(case) != "skipped"
            skipped[backend] += outcome_of(case) == "skipped"
    for name in dict.fromkeys(BACKENDS.values()):
        told = ", ".join(f"{port} {n}" for port, n in sorted(ran[name].items()))
        print(f"{name:<32} {told or 'none'}{f', {skipped[name]} skipped' if skipped[name] else ''}")
    return [name for name in dict.fromkeys(BACKENDS.values()) if skipped[name] or not ran[name].total()]


def documents(cases: Iterable[Case]) -> None:
    """Print how many tests of each design document there are, and how many of them passed."""
    told: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        if suite_of(case) == "conformance":
            told[case.get("classname", "").split(".")[2]][outcome_of(case)] += 1
    for name, outcomes in sorted(told.items()):
        print(f"document {name:<23} {outcomes['passed']} of {outcomes.total()} passed")


def main(report: Path, *chosen: str) -> int:
    """Print the tables and `N passed, N failed`; 1 if anything failed, nothing ran, or a promised backend was left out.

    `chosen` is what pytest was asked for: if only some tests were, no backend is missed.
    """
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
    documents(cases)
    left_out = backends(cases)
    promised = os.environ.get("RUSHES_TEST_PROMISED") == "all" and not chosen
    if promised and left_out:
        print(f"promised and not run completely: {', '.join(left_out)}")
    skipped = f", {outcomes['skipped']} skipped" if outcomes["skipped"] else ""
    print(f"{outcomes['passed']} passed, {outcomes['failed']} failed{skipped}")
    return int(not outcomes["passed"] or outcomes["failed"] > 0 or (promised and bool(left_out)))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
