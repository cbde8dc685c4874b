"""Playlist: the proxy as players want it, and the picture that stands for the film."""

from rushes.domain.stage import Card, Scope
from rushes.media import hls, poster
from rushes.media.layout import Layout
from rushes.media.pack import PackIndex, read_frame
from rushes.stages.port import Input, Work

_PLAYLIST = "application/vnd.apple.mpegurl"


class Playlist:
    """Joins the pieces of all chunks and the sound by naming them; no bytes are copied."""

    card = Card("playlist", 1, Scope.VIDEO, ("hls", "poster"), needs=("probe", "develop", "audio"))

    def run(self, work: Work) -> None:
        """Save the playlists (index, video, audio) and poster.jpg under the names that people know."""
        if "hls" in work.wanted:
            _save_hls(work)
        if "poster" in work.wanted:
            _save_poster(work)


def _save_hls(work: Work) -> None:
    folder = f"videos/proxy/{work.video}"
    pieces = [p for p in work.inputs("develop", "proxy") if p.manifest.artifacts]
    sounds = [s for s in work.inputs("audio", "sound") if s.manifest.artifacts]
    video = [_part(work, piece, "piece.mp4", f"piece_{i:05d}.mp4") for i, piece in enumerate(pieces)]
    audio = [_part(work, sound, "sound.mp4", "sound.mp4") for sound in sounds]
    sound_bits = hls.peak_bandwidth(audio) if audio else None
    picture = None
    if pieces:
        facts = pieces[0].manifest.facts
        bits = hls.peak_bandwidth(video) + (sound_bits or 0)
        picture = hls.Rendition(facts["width"], facts["height"], bits, facts["codec"])
    texts = {"index.m3u8": hls.master_playlist(picture, sound_bits)}
    texts |= {"video.m3u8": hls.media_playlist(video)} if video else {}
    texts |= {"audio.m3u8": hls.media_playlist(audio)} if audio else {}
    for name, text in texts.items():
        work.save("hls", name, text.encode(), _PLAYLIST, f"{folder}/{name}")
    work.note("hls", origin_us=_origin_us(video or audio))


def _part(work: Work, source: Input, artifact: str, name: str) -> hls.Part:
    work.refer("hls", source.manifest.artifact(artifact), name, f"videos/proxy/{work.video}/{name}")
    facts = source.manifest.facts
    return hls.Part(name, str(facts.get("init_sha256", "")), Layout.from_json(facts))


def _origin_us(parts: list[hls.Part]) -> int:
    """The media time at which a player's clock shows zero."""
    if not parts or not parts[0].layout.segments:
        return 0
    return int(parts[0].layout.segments[0].start * parts[0].layout.base * 1_000_000)


def _save_poster(work: Work) -> None:
    packs = [p for p in work.inputs("develop", "frames") if p.manifest.artifacts]
    chosen = poster.choose([PackIndex.from_json(p.json("frames.json")) for p in packs])
    work.count("poster", 0)
    if chosen is None:
        return
    pack, kept = chosen
    with packs[pack].path("frames.pack").open("rb") as f:
        jpeg = read_frame(f, kept)
    work.save("poster", "poster.jpg", jpeg, "image/jpeg", f"thumbs/{work.video}/poster.jpg")
    work.note("poster", us=kept.us)


STAGE = Playlist()
