"""Prompts for agents: how to search, and how to cite what was found."""

INSTRUCTIONS = """\
rushes is a library of videos: what is said, written and seen in them, with times. Search first; read the transcript
around a hit before you answer; look at a frame if the picture matters. Cite every moment with its video id, time range
and link. Times are seconds of video time. Lists come in pages: pass `cursor` to get the next one. Adding videos and
cutting clips take time: call job_status, or make_clip with the same range, until they are done."""

GRAMMAR = """\
How to write a query for the tool `search` (every text is valid; what is not understood is searched as plain words):

| query | finds |
|---|---|
| `budget year` | both words at the same time |
| `"next year"` | the exact phrase |
| `budg*` | words that begin so; accents and case do not matter |
| `budget -tight` | `budget` where `tight` is not said |
| `tight OR loose` | either word |
| `(tight OR loose) budget` | a group |
| `say:budget` | only what is said; also text: (written), object:, person:, place:, entity:, name: (of a video) |
| `object:*` | any object |
| `in:holiday budget` | in videos with that name |
| `lang:fr budget` | in one language; -lang:fr excludes it |
| `kind:text budget` | one kind of line |
| `date:2024-05` | by day, month or year; date:2023..2024, date:>2020, date:last-week |
| `kind:shot person:anna` | shots with Anna |
| `say:budget near:5s text:q3` | at most 5 seconds apart |
| `say:budget before text:q3` | ends before the other begins |
| `say:budget during text:q3` | inside the other |
| `place:beach with person:anna` | the first, if the other overlaps it |
"""


def search_help() -> str:
    """How to write a search query."""
    return GRAMMAR


def find_moment(question: str) -> str:
    """Find the moments of the footage that answer a question, and cite them."""
    return f"""{GRAMMAR}
Question: {question}

Search with two or three different queries, from narrow to wide. Read the transcript 30 seconds around the best hits.
Answer in a few sentences, and list each moment that you used: video id, start and end in seconds, link."""


def summarise_video(video_id: str) -> str:
    """Summarise one video, with the time of each part."""
    return f"""Read the transcript of {video_id} (resource rushes://videos/{video_id}/transcript) and its text on screen
(get_transcript with kind "text"). Summarise it in parts: for each, start and end in seconds, link, one sentence."""
