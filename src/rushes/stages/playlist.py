"""Playlist: the proxy as players need it, the poster, and thumbnails for seeking."""

from rushes.domain.stage import Scope, StageSpec
from rushes.media.developing import hls, transport_stream, trickplay
from rushes.media.developing.frame_pack import PackedFrame, PackIndex, read_frame
from rushes.media.developing.hls import SegmentIndex
from rushes.stages.port import Input, Work

_PLAYLIST = "application/vnd.apple.mpegurl"


class Playlist:
    """Joins the pieces of all chunks and the sound by naming them; no bytes are copied."""

    spec = StageSpec(
        "playlist",
        2,
        Scope.VIDEO,
        ("hls", "poster", "trickplay"),
        needs=("probe", "develop", "audio.sound"),
        options={"segments": "fmp4"},
        limits={"segments": ("fmp4", "ts")},
        output_options={"hls": ("segments",), "poster": (), "trickplay": ()},
    )

    def run(self, work: Work) -> None:
        """Save the playlists (index, video, audio), poster.jpg and the sheets under the names that people know."""
        if "hls" in work.wanted:
            (_save_transport_stream if work.options["segments"] == "ts" else _save_hls)(work)
        if "poster" in work.wanted:
            _save_poster(work)
        if "trickplay" in work.wanted:
            _save_trickplay(work)


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


def _save_transport_stream(work: Work) -> None:
    """The same picture and sound as one MPEG transport stream, cut into files: for players that know no fMP4."""
    folder, pieces = f"videos/proxy/{work.video}", [p for p in work.inputs("develop", "proxy") if p.manifest.artifacts]
    sounds = [s.path("sound.mp4") for s in work.inputs("audio", "sound") if s.manifest.artifacts]
    made = transport_stream.write(work.scratch / "ts", [p.path("piece.mp4") for p in pieces], sounds)
    for file in made:
        kind = _PLAYLIST if file.suffix == ".m3u8" else "video/mp2t"
        work.save("hls", file.name, file, kind, f"{folder}/{file.name}")
    work.count("hls", 0)


def _part(work: Work, source: Input, artifact: str, name: str) -> hls.RenditionFile:
    work.refer("hls", source.manifest.artifact(artifact), name, f"videos/proxy/{work.video}/{name}")
    facts = source.manifest.facts
    return hls.RenditionFile(name, str(facts.get("init_sha256", "")), SegmentIndex.from_json(facts))


def _origin_us(parts: list[hls.RenditionFile]) -> int:
    """The media time at which a player's clock shows zero."""
    if not parts or not parts[0].layout.segments:
        return 0
    return int(parts[0].layout.segments[0].start * parts[0].layout.base * 1_000_000)


def _save_poster(work: Work) -> None:
    packs = _packs(work)
    chosen = trickplay.choose_poster([index for _, index in packs])
    work.count("poster", 0)
    if chosen is None:
        return
    pack, kept = chosen
    jpeg = _jpeg(packs[pack][0], kept)
    work.save("poster", "poster.jpg", jpeg, "image/jpeg", f"thumbs/{work.video}/poster.jpg")
    work.note("poster", us=kept.us)


def _save_trickplay(work: Work) -> None:
    packs, facts = _packs(work), work.facts
    work.count("trickplay", 0)
    shown = trickplay.tiles([index for _, index in packs], facts.start, facts.duration)
    if not shown:
        return
    size, folder = trickplay.tile_size(packs[0][1].width, packs[0][1].height), f"thumbs/{work.video}/trickplay"
    sheets = trickplay.sheets(shown, size, lambda place: _jpeg(packs[place[0]][0], place[1]))
    for n, jpeg in enumerate(sheets):
        work.save("trickplay", f"{n}.jpg", jpeg, "image/jpeg", f"{folder}/{trickplay.FOLDER}/{n}.jpg")
    text = trickplay.webvtt(shown, size, facts.duration)
    work.save("trickplay", "thumbnails.vtt", text.encode(), "text/vtt", f"{folder}/thumbnails.vtt")
    work.note("trickplay", interval_ms=trickplay.INTERVAL_MS, width=size[0], height=size[1], tiles=len(shown))


def _packs(work: Work) -> list[tuple[Input, PackIndex]]:
    packs = [p for p in work.inputs("develop", "frames") if p.manifest.artifacts]
    return [(p, PackIndex.from_json(p.json("frames.json"))) for p in packs]


def _jpeg(pack: Input, kept: PackedFrame) -> bytes:
    with pack.open("frames.pack") as f:
        return read_frame(f, kept)
