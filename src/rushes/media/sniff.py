"""Why a file cannot be footage, by its first bytes."""

_TEXT = frozenset(range(32, 127)) | {9, 10, 12, 13}


def why_not_footage(head: bytes) -> str:
    """Why a file with this beginning cannot be footage; empty if it may be."""
    if not head:
        return "is empty"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"#extm3u"):
        return "is a playlist, not a video: it only lists other files"
    if start.startswith(b"ffconcat"):
        return "is a list of files, not a video"
    if all(byte in _TEXT for byte in head):
        return "is a text file, not a video"
    if not any(head):
        return "begins with zeros: its copy or recording is incomplete"
    return ""
