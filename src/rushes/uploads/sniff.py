"""Whether an upload may be footage, told from its first bytes before anything else is done with it."""

from rushes.media.sniff import why_not_footage

HEAD = 4096  # bytes that are looked at
OTHER = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "an archive",
    b"MZ": "a program",
    b"\x7fELF": "a program",
    b"\x1f\x8b": "packed",
}


def describe_non_footage(head: bytes) -> str:
    """What it is instead; empty if it may be footage."""
    other = next((f"is {what}, not footage" for magic, what in OTHER.items() if head.startswith(magic)), "")
    return other or why_not_footage(head) or ""
