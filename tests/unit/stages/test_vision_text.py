"""Lines over time and the entities in them."""

from fractions import Fraction

import pytest

from rushes.domain.observation import Observation, dump
from rushes.domain.span import Span
from rushes.engines.nets.text_language import language_of
from rushes.stages.vision.entities import find_entities
from rushes.stages.vision.text_segments import merge_readings, text_hash

MS = Fraction(1, 1000)
LOW, HIGH = (0.1, 0.8, 0.5, 0.06), (0.1, 0.1, 0.5, 0.06)


def reading(
    text: str, start: int, end: int, confidence: float = 0.9, box: tuple[float, float, float, float] = LOW
) -> Observation:
    return Observation("text", Span(start, end, MS), text, confidence, box=box)


def ranges(*readings: Observation) -> list[tuple[str, int, int]]:
    return [(o.text, o.span.start, o.span.end) for o in merge_readings(readings)]


def test_the_same_words_are_one_range_and_jitter_is_outvoted() -> None:
    found = merge_readings(
        [
            reading("We have to leave", 0, 1000),
            reading("We have t0 leave", 1000, 2000, 0.85),
            reading("We have to leave", 2000, 3500, 0.95),
        ]
    )
    assert [(o.text, o.span.start, o.span.end, o.confidence) for o in found] == [("We have to leave", 0, 3500, 0.95)]
    assert found[0].extra["frames"] == 3


def test_other_words_in_the_same_place_begin_a_new_range() -> None:
    readings = [reading("before sunrise", t, t + 1000) for t in (0, 1000)]
    readings += [reading("the bridge is closed", t, t + 1000) for t in (2000, 3000)]
    assert ranges(*readings) == [("before sunrise", 0, 2000), ("the bridge is closed", 2000, 4000)]


def test_the_same_words_after_a_while_are_another_range() -> None:
    times = (0, 1000, 9000, 10_000)
    assert ranges(*(reading("Chapter", t, t + 1000) for t in times)) == [
        ("Chapter", 0, 2000),
        ("Chapter", 9000, 11_000),
    ]


def test_a_line_that_is_overlooked_once_goes_on() -> None:
    assert ranges(reading("Chapter", 0, 1000), reading("Chapter", 2000, 3000)) == [("Chapter", 0, 3000)]


def test_lines_that_move_stay_one() -> None:
    climbing = [reading("Directed by", n * 1000, n * 1000 + 1000, box=(0.1, 0.9 - n / 10, 0.5, 0.06)) for n in range(4)]
    assert ranges(*climbing) == [("Directed by", 0, 4000)]


def test_two_equal_lines_at_once_are_two() -> None:
    both = [reading("EXIT", t, t + 1000, box=box) for t in (0, 1000) for box in (HIGH, LOW)]
    assert ranges(*both) == [("EXIT", 0, 2000), ("EXIT", 0, 2000)]


def test_what_is_unsure_short_or_seen_once_is_left_out() -> None:
    assert ranges(reading("ghost", 0, 1000, 0.94)) == []
    assert ranges(reading("ghost", 0, 1000, 0.95)) == [("ghost", 0, 1000)]
    assert ranges(reading("ghost", 0, 1000, 0.7), reading("ghost", 1000, 2000, 0.79)) == []
    assert ranges(reading("x", 0, 1000, 0.99), reading("x", 1000, 2000, 0.99)) == []


def test_an_observation_that_cannot_be_true_is_never_written() -> None:
    for wrong in (
        reading("a", 10, 5),
        reading("a", 0, 1, 1.2),
        reading("a", 0, 1, float("nan")),
        reading("a", 0, 1, box=(0.8, 0, 0.5, 0.1)),
    ):
        with pytest.raises(ValueError, match="not an observation"):
            dump([wrong])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Revenue grew 18% to $4.2 million",
            [("18%", "number", "18", "%"), ("$4.2 million", "number", "4200000", "USD")],
        ),
        ("Total: EUR 1,284.50", [("EUR 1,284.50", "number", "1284.50", "EUR")]),
        ("zusammen 1.284,50 €", [("1.284,50 €", "number", "1284.50", "EUR")]),
        ("3,5 kg für 12 €", [("3,5 kg", "number", "3.5", "kg"), ("12 €", "number", "12", "EUR")]),
        ("-5 °C at 120 km/h", [("-5 °C", "number", "-5", "°C"), ("120 km/h", "number", "120", "km/h")]),
        ("£2bn, $3m and 5 m", [("£2bn", "number", "2000000000", "GBP"), ("$3m", "number", "3000000", "USD"),
                               ("5 m", "number", "5", "m")]),
        ("12.3K likes, 1 284 000 views", [("12.3K", "number", "12300"), ("1 284 000", "number", "1284000")]),
        ("1,284,000 of 1.500.000", [("1,284,000", "number", "1284000"), ("1.500.000", "number", "1500000")]),
        ("follow @Anna.B, not a@b.org", [("@Anna.B", "mention", "@anna.b")]),
        ("#Rushes #2025 #day1", [("#Rushes", "hashtag", "#rushes"), ("#2025", "hashtag", "#2025"),
                                 ("#day1", "hashtag", "#day1")]),
        ("see HTTPS://Example.org/A?b=1#c.", [("HTTPS://Example.org/A?b=1#c", "url", "https://example.org/A?b=1#c")]),
        ("www.example.org/rushes?id=77", [("www.example.org/rushes?id=77", "url", "www.example.org/rushes?id=77")]),
        ("Example.com/", [("Example.com/", "url", "example.com")]),
        ("well done 👍🏽 👩‍🚀 ☀️", [("👍🏽", "emoji", "👍🏽"), ("👩‍🚀", "emoji", "👩‍🚀"), ("☀️", "emoji", "☀")]),
        ("2025-11-15 17:43:09", []),
        ("Call +44 20 7946 0958", [("+44 20 7946 0958", "number", "+442079460958", "True")]),
        ("(555) 123-4567 or 555-123-4567", [("(555) 123-4567", "number", "5551234567", "True"),
                                            ("555-123-4567", "number", "5551234567", "True")]),
        ("Tel. 030 901820, 01 23 45 67 89", [("030 901820", "number", "030901820", "True"),
                                             ("01 23 45 67 89", "number", "0123456789", "True")]),
        ("no. It is v1.2.3", []),
        ("", []),
    ],
)  # fmt: skip
def test_entities_are_found_whole_with_what_they_mean(text: str, found: list[tuple[str, ...]]) -> None:
    seen = [(e.text, e.type, e.normalized, *[str(v) for v in e.meaning.values()]) for e in find_entities(text)]
    assert seen == found


def test_texts_that_differ_in_case_and_spaces_alone_have_one_hash() -> None:
    assert text_hash("We  have\nTo leave ") == text_hash("we have to leave") != text_hash("we have to live")


def test_letters_tell_the_language_where_a_script_has_several() -> None:
    assert language_of("Wir müssen vor Sonnenaufgang gehen", ["en"]) == "de"
    assert language_of("La ville est fermée ce soir", ["en"]) == "fr"
    assert language_of("The bridge is closed", ["de"]) == "en"
    assert language_of("Сегодня вечером будет хорошая погода", ["en"]) == "ru"
    assert language_of("EXIT", ["de"]) == "de"  # of one word nothing is certain


def test_the_script_tells_the_language() -> None:
    assert language_of("Outlook", ["en"]) == "en"
    assert language_of("Straße", ["deu", "en"]) == "de"
    assert language_of("東京タワー", ["en"]) == "ja"
    assert language_of("中文", ["en"]) == "zh"
    assert language_of("Привет", ["en"]) == "und-Cyrl"
    assert language_of("12:30", ["en"]) == ""
