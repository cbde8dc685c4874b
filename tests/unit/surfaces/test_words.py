"""Words that pages and the terminal share: steps, recipes, states of tasks, rates, containers, pages of a list."""

import pytest

from rushes.domain.errors import NotFound
from rushes.plan.recipes import RECIPES
from rushes.stages.registry import load_stages
from rushes.surfaces.cli.options import cursor_of, more_remark
from rushes.surfaces.words import (
    RECIPE_NAMES,
    STAGE_NAMES,
    TASK_WORDS,
    container_name,
    final_word,
    frame_rate,
    many,
    recipe_name,
    setting_value,
    stage_name,
    task_name,
)


def test_every_stage_and_recipe_has_a_name_for_people() -> None:
    assert STAGE_NAMES.keys() >= load_stages().keys()
    assert RECIPE_NAMES.keys() >= RECIPES.keys()
    assert [stage_name(s) for s in ("probe", "develop", "read_text", "segments", "my_own")] == [
        "check file", "make preview", "read text", "merge text", "my own"]  # fmt: skip
    assert recipe_name("searchable") == "Full"


def test_pages_call_states_of_tasks_as_people_do() -> None:
    assert [task_name(word) for word in TASK_WORDS] == [
        "done", "reused", "in progress", "ready", "retrying soon", "waiting", "failed", "cancelled"]  # fmt: skip


def test_rates_and_containers_are_written_as_people_know_them() -> None:
    assert [frame_rate(r) for r in ((25, 1), (30000, 1001), (24000, 1001), (50, 2))] == [
        "25 fps", "29.97 fps", "23.976 fps", "25 fps"]  # fmt: skip
    assert container_name("mov,mp4,m4a,3gp,3g2,mj2", "a/film.MP4") == "MP4"
    assert container_name("matroska,webm", "film.mkv") == "MKV"
    assert [many(n) for n in (0, 5, 200)] == ["", "5", "99+"]


def test_a_page_of_a_list_is_found_by_its_number() -> None:
    after = {"": "b", "b": "c", "c": ""}
    assert [cursor_of(page, "", after.__getitem__) for page in (1, 2, 3)] == ["", "b", "c"]
    with pytest.raises(NotFound, match="there is no page 4"):
        cursor_of(4, "", after.__getitem__)
    assert more_remark("rushes ls", 100, 100, 1) == "more: rushes ls --page 2"
    assert more_remark("rushes ls", 5, 100, 2) == "more: rushes ls --limit 5 --page 3"


def test_a_final_state_of_the_ledger_is_said_in_the_word_of_every_list() -> None:
    assert [final_word(state) for state in ("completed", "failed", "cancelled")] == ["done", "failed", "cancelled"]


def test_a_setting_is_shown_as_the_file_of_settings_has_it() -> None:
    assert [setting_value(value) for value in (True, 2, "fast")] == ["true", "2", "fast"]
