"""The tally of the test command: every backend by name, and a promise that was not kept is a failure."""

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from scripts.tally import BACKENDS, main

ALL = dict.fromkeys(BACKENDS, "passed")


def _report(folder: Path, words: dict[str, str]) -> Path:
    cases = [
        f'<testcase classname="tests.contract.test_ledger" name={quoteattr(f"test_it[{word}-1]")} time="0.1">'
        f"{'<skipped/>' if outcome == 'skipped' else ''}</testcase>"
        for word, outcome in words.items()
    ]
    (folder / "report.xml").write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return folder / "report.xml"


@pytest.fixture(autouse=True)
def promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHES_TEST_PROMISED", "all")


def test_every_backend_is_told_with_its_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(_report(tmp_path, ALL)) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in BACKENDS.values())
    assert "S3 on ministack                  ledger 2" in told


@pytest.mark.parametrize("words", [{w: o for w, o in ALL.items() if w != "redis"}, ALL | {"redis": "skipped"}])
def test_a_promised_backend_that_was_not_tried_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: dict[str, str]
) -> None:
    assert main(_report(tmp_path, words)) == 1
    assert "promised and not run completely: Valkey" in capsys.readouterr().out


def test_who_asked_for_some_tests_misses_none(tmp_path: Path) -> None:
    assert main(_report(tmp_path, {"memory": "passed"}), "tests/unit") == 0


def test_each_design_document_is_told_with_what_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = 'classname="tests.conformance.eioku.test_paths" name="test_it" time="0.1"'
    cases = f"<testcase {name}/><testcase {name}><failure/></testcase>"
    (tmp_path / "report.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert main(tmp_path / "report.xml", "tests/conformance") == 1
    assert "document eioku                   1 of 2 passed" in capsys.readouterr().out
