"""Terminal, pages and API show the same word for the state of the same job."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from rushes.domain.job import JobCommand
from rushes.surfaces.cli.main import main
from tests.api.kit import serving, submit, work
from tests.unit.cli_worker import take


@pytest.mark.parametrize("word", ["waiting", "running", "paused", "done", "cancelled"])
def test_a_state_has_one_word_everywhere(tmp_path: Path, word: str) -> None:
    with serving(tmp_path / "home") as server:
        job = submit(server.ledger, "film", 2).id
        if word == "running":
            take(tmp_path / "home")
        elif word == "done":
            work(server.ledger, 10)
        elif word != "waiting":
            server.ledger.control(job, JobCommand.PAUSE if word == "paused" else JobCommand.CANCEL)
        api = server.get(f"/api/v1/jobs/{job}")["word"]
        page = re.search(r'id="job-word".*?</svg>(\w+)<', server.http.get(f"/jobs/{job}").text, re.DOTALL)
    terminal = json.loads(CliRunner().invoke(main, ["--home", str(tmp_path / "home"), "jobs", "ls", "--json"]).stdout)
    assert (api, page and page[1], terminal["jobs"][0]["word"]) == (word, word, word)
