"""Makes the Python code of proto/ in src/rushes/remote/generated; tests compare it with what is committed."""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ROOT / "src" / "rushes" / "remote" / "generated"


def make(to: Path) -> None:
    """Write the code of every .proto file into a folder."""
    files = sorted(map(str, (ROOT / "proto").rglob("*.proto")))
    with TemporaryDirectory() as folder:
        options = [f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--pyi_out={folder}"]
        if protoc.main(["", *options, *files]):
            sys.exit("protoc refused the files of proto/")
        for made in Path(folder).rglob("*_pb2.py*"):
            shutil.copy(made, to / made.name)


if __name__ == "__main__":
    make(GENERATED)
