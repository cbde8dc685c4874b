"""The page of proofs holds what scripts/prove printed, with its command and commit, and no prose."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proof.md"
SECTION = re.compile(
    r"## (?P<title>.+)\n\n"
    r"(?:held|BROKEN \(exit \d+\)), (?:\d+ s, )?commit [0-9a-f]{7,}(?:-dirty)?, .+\n\n"
    r"```\n\$ python -m (?P<command>.+)\n(?P<output>[^`]*)```\n*\Z"
)


def test_each_section_is_one_command_with_its_commit_and_its_output() -> None:
    _, *sections = re.split(r"^(?=## )", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    assert len(sections) > 10
    for section in sections:
        found = SECTION.match(section)
        assert found, section[:200]
        assert found["title"] == re.sub(r" --seed \d+", "", found["command"])
