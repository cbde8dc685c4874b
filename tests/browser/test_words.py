"""Scripts and templates word times, ranges and sizes alike."""

from rushes.surfaces.words import plural, size, time_range, timecode
from tests.api.kit import Serving
from tests.browser.conftest import Open

RANGES = [(0.1, 0.4), (5, 7), (29.6, 30.4), (300, 420), (20, 200), (5400, 9000), (96, 134), (5600, 5900), (300, 302)]
SIZES = [0, 999, 1000, 99_950, 148_000_000, 1_300_000_000, 2 * 10**12]
TIMES = [0, 761_000_000, 3_723_500_000]
WORDS = """async ([ranges, sizes, times]) => {
  const { plural, size, timecode, timeRange } = await import("/static/words.js");
  const counts = [plural(1, "hit"), plural(1200, "hit")];
  return [ranges.map(timeRange), sizes.map(size), times.map((us) => timecode(us, 1)), counts];
}"""


def test_scripts_use_the_same_words_as_the_server(served: Serving, opened: Open) -> None:
    found = opened(served, "/settings").evaluate(WORDS, [RANGES, SIZES, TIMES])
    assert found == [
        [time_range(r) for r in RANGES],
        [size(n) for n in SIZES],
        [timecode(us, 1) for us in TIMES],
        [plural(1, "hit"), plural(1200, "hit")],
    ]
