"""The transcript stage: what the chunks heard, in order, as data, text and subtitles."""

import json
from fractions import Fraction
from pathlib import Path

from rushes.domain.observation import Observation, dump
from rushes.domain.result import Artifact, Manifest
from rushes.media.transcripts import spoken_time
from rushes.stages.port import Input, Work
from rushes.stages.speech.transcriber import split_lines
from rushes.stages.transcript import Transcript
from tests.memory_blobs import MemoryBlobs
from tests.unit.speech_kit import PROVENANCE, make_work, results, sound_facts, words

ENGLISH = split_lines(words("Good evening. Here is the news.", start=1), "en")
GERMAN = split_lines(
    words("Guten Abend, meine Damen und Herren, hier sind die Nachrichten.", start=11), "de", doubtful=True
)


def run(tmp_path: Path, *chunks: list[Observation], start: Fraction = Fraction(0)) -> tuple[Work, Input]:
    blobs = MemoryBlobs()
    inputs = []
    for found in chunks:
        blob = blobs.put("me", dump(found))
        artifact = Artifact("lines.jsonl", blob.sha256, blob.size, "application/jsonl")
        inputs.append(Input(Manifest("k", "lines", (artifact,), PROVENANCE), "me", blobs))
    work = make_work(Transcript(), sound_facts(60, start), tmp_path, inputs={"transcribe.lines": inputs}, blobs=blobs)
    Transcript().run(work)
    (result,) = results(work)["transcript.transcript"]
    return work, result


def test_chunks_become_one_transcript_in_their_order(tmp_path: Path) -> None:
    _, made = run(tmp_path, ENGLISH, [], GERMAN)
    doc = made.json("transcript.json")
    assert [o["text"] for o in doc["lines"]] == [o.text for o in (*ENGLISH, *GERMAN)]
    assert doc["language"] == "de"
    assert [language for language, _ in doc["languages"]] == ["de", "en"]
    assert made.bytes("transcript.txt").decode().startswith("Good evening. Here is the news.\n\nGuten Abend")
    assert b"00:00:01,000 --> " in made.bytes("subtitles.srt")
    assert made.bytes("subtitles.vtt").startswith(b"WEBVTT\n\n1\n00:00:01.000 --> ")


def test_the_manifest_says_what_players_and_people_want_to_know(tmp_path: Path) -> None:
    work, made = run(tmp_path, ENGLISH, GERMAN)
    assert made.manifest.count == 3
    assert made.manifest.facts["language"] == "de"
    assert made.manifest.facts["doubtful"] == 1
    names = {a.publish for a in made.manifest.artifacts}
    files = ("transcript.json", "transcript.txt", "subtitles.srt", "subtitles.vtt")
    assert names == {f"transcripts/{work.video}/{name}" for name in files}


def test_subtitles_count_from_where_players_begin(tmp_path: Path) -> None:
    shifted = split_lines(words("Late start.", start=91.4), "en")
    _, made = run(tmp_path, shifted, start=Fraction(90))
    assert b"00:00:01,400 --> " in made.bytes("subtitles.srt")
    assert made.json("transcript.json")["lines"][0]["span"][0] == int(1.4 * 16000)


def test_a_film_in_which_nobody_speaks_has_a_valid_empty_transcript(tmp_path: Path) -> None:
    _, made = run(tmp_path, [], [])
    assert made.manifest.count == 0
    assert made.manifest.facts["language"] == ""
    assert made.bytes("subtitles.srt") == made.bytes("transcript.txt") == b""
    assert json.loads(made.bytes("transcript.json"))["lines"] == []


def test_the_same_chunks_give_the_same_bytes(tmp_path: Path) -> None:
    once, again = (run(tmp_path, ENGLISH, GERMAN)[1].manifest.artifacts for _ in range(2))
    assert once == again


def test_the_language_is_the_one_most_spoken_not_the_one_of_most_lines() -> None:
    long_german = split_lines(words("sehr lange Worte", step=3), "de")
    assert next(iter(spoken_time([*ENGLISH, *ENGLISH, *long_german]))) == "de"
    assert spoken_time([]) == {}


def test_zero_is_where_the_first_track_begins() -> None:
    assert sound_facts(5, Fraction(3, 2)).start == Fraction(3, 2)
    assert sound_facts(5, Fraction(-1, 2), video_seconds=5).start == Fraction(-1, 2)
