"""Every file and folder of the source that a page names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += [*sorted((ROOT / "docs" / "guides").glob("*.md")), *sorted((ROOT / "docs" / "runbooks").glob("*.md"))]
NAMED = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9.]*)`")
ROOMS = {path.name for path in (ROOT / "src" / "rushes").iterdir() if path.is_dir()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path) -> None:
    for name in NAMED.findall(page.read_text("utf-8")):
        if name.split("/")[0] in ROOMS:
            assert (ROOT / "src" / "rushes" / name).exists(), name
        elif name.split("/")[0] in ("tests", "benchmarks", "proof", "scripts", "infra"):
            assert (ROOT / name).exists(), name
