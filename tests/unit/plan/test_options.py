import pytest

from rushes.domain.errors import Refused
from rushes.plan.options import check_options, merge_options, parse_options
from rushes.stages.registry import load_stages, specs_of

SPECS = specs_of(load_stages())


def test_options_are_read_as_the_stage_takes_them() -> None:
    asked = parse_options(["develop.target_fps=5", "read_text.languages=eng+de", "read_text.engine=tesseract"])
    assert check_options(asked, SPECS) == {
        "develop": {"target_fps": 5.0},
        "read_text": {"languages": ["eng", "de"], "engine": "tesseract"},
    }
    assert check_options({"read_text": {"languages": ["fra"]}}, SPECS) == {"read_text": {"languages": ["fra"]}}


def test_later_options_win_name_by_name() -> None:
    first = {"develop": {"target_fps": 1, "crf": 20}}
    assert merge_options(first, {"develop": {"crf": 30}, "playlist": {"segments": "ts"}}) == {
        "develop": {"target_fps": 1, "crf": 30},
        "playlist": {"segments": "ts"},
    }


@pytest.mark.parametrize("text", ["develop", "develop=5", "develop.target_fps", ".x=1", "=", ""])
def test_an_option_is_written_with_its_stage(text: str) -> None:
    with pytest.raises(Refused, match="invalid option"):
        parse_options([text])


@pytest.mark.parametrize(
    ("stage", "name", "value", "why"),
    [
        ("nothing", "x", 1, "unknown stage"),
        ("develop", "speed", 1, "unknown option develop.speed"),
        ("probe", "max_pixels", 10**12, "unknown option probe.max_pixels"),  # of the machine, not of a request
        ("develop", "target_fps", 0, "invalid value"),
        ("develop", "target_fps", "many", "invalid value"),
        ("develop", "target_fps", True, "invalid value"),
        ("develop", "target_fps", float("nan"), "invalid value"),
        ("develop", "crf", float("inf"), "invalid value"),
        ("develop", "dedupe_threshold", 1.5, "invalid value"),
        ("playlist", "segments", "avi", "invalid value"),
        ("read_text", "engine", "other", "invalid value"),
        ("read_text", "languages", [], "invalid value"),
        ("read_text", "languages", [1], "invalid value"),
        ("read_text", "languages", [""], "invalid value"),
        ("read_text", "languages", {"en": 1}, "invalid value"),
        ("read_text", "languages", ["x" * 300], "invalid value"),
    ],
)
def test_what_a_stage_does_not_take_is_refused(stage: str, name: str, value: object, why: str) -> None:
    with pytest.raises(Refused, match=why):
        check_options({stage: {name: value}}, SPECS)
