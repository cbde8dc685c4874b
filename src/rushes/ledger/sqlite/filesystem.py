"""Whether a folder is a safe place for SQLite: local disks are, network file systems are not."""

from pathlib import Path

_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "ncpfs"}
)
_REMOTE_FUSE = ("fuse.sshfs", "fuse.s3", "fuse.rclone", "fuse.gcsfuse", "fuse.glusterfs", "fuse.davfs", "fuse.goofys")


def mounts() -> str:
    """The mount table of this process, "" where there is none."""
    table = Path("/proc/self/mountinfo")
    return table.read_text() if table.exists() else ""


def network_file_system(path: Path, table: str) -> str | None:
    """The kind of network file system that a path lies on, None if it is a local one."""
    kind = _kind(path.resolve(), table)
    return kind if kind in _REMOTE or kind.startswith(_REMOTE_FUSE) else None


def _kind(path: Path, table: str) -> str:
    """The type of the deepest mount above a path; of two mounts at one point the later one counts."""
    best, found = -1, ""
    for line in table.splitlines():
        head, _, tail = line.partition(" - ")
        point = Path(_unescaped(head.split()[4]))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, found = len(point.parts), tail.split()[0]
    return found


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
