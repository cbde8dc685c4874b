"""The code of the .proto files is what protoc makes of them."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_proto.py"


def test_the_generated_code_is_what_the_proto_files_say(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCRIPT))
    script["make"](tmp_path)
    made = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert len(made) == 6
    assert made == {name: (script["GENERATED"] / name).read_text() for name in made}, "run scripts/make_proto.py"
