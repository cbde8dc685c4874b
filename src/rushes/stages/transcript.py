"""Transcript: all lines of a film as data, text and subtitles."""

from rushes.domain.observation import load
from rushes.domain.result import TEXT
from rushes.domain.stage import Scope, StageSpec
from rushes.media.subtitles import cues, srt, text, vtt
from rushes.media.transcripts import transcript_document
from rushes.stages.port import Work


class Transcript:
    """Joins what the chunks heard, in film time; decides nothing but the language of the whole."""

    spec = StageSpec("transcript", 3, Scope.VIDEO, ("transcript",), needs=("probe", "transcribe"))

    def run(self, work: Work) -> None:
        """Save transcript.json, transcript.txt, subtitles.srt and subtitles.vtt."""
        heard = (line for part in work.inputs("transcribe", "lines") for line in load(part.bytes("lines.jsonl")))
        lines = [line.moved(-work.facts.start) for line in heard]
        doc = transcript_document(lines)
        found = cues(lines)
        folder = f"transcripts/{work.video}"
        work.save_json("transcript", "transcript.json", doc, f"{folder}/transcript.json")
        for name, body, kind in (
            ("transcript.txt", text(lines), TEXT),
            ("subtitles.srt", srt(found), "application/x-subrip"),
            ("subtitles.vtt", vtt(found), "text/vtt"),
        ):
            work.save("transcript", name, body.encode(), kind, f"{folder}/{name}")
        work.count("transcript", len(lines))
        work.note(
            "transcript", language=doc["language"], languages=[one for one, _ in doc["languages"]], cues=len(found)
        )
        work.note("transcript", doubtful=sum(bool(line.extra.get("doubtful")) for line in lines))
