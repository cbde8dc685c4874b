"""The .proto files follow the usual style, and their code is what protoc makes of them."""

import re
import runpy
from pathlib import Path

from rushes.remote.generated import events_pb2, jobs_pb2, workers_pb2

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_proto.py"


def test_the_generated_code_is_what_the_proto_files_say(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCRIPT))
    script["make"](tmp_path)
    made = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert len(made) == 6
    assert made == {name: (script["GENERATED"] / name).read_text() for name in made}, "run scripts/make_proto.py"


def test_the_proto_files_follow_the_usual_style() -> None:
    """The rules of `buf lint`: versioned package, names of services, messages, fields and enum values."""
    for module in (events_pb2, jobs_pb2, workers_pb2):
        file = module.DESCRIPTOR
        assert (file.package, file.name.rpartition("/")[0]) == ("rushes.v1", "rushes/v1")
        for service in file.services_by_name.values():
            assert service.name.endswith("Service")
            for method in service.methods:
                assert method.input_type.name == f"{method.name}Request"
                assert method.output_type.name in (f"{method.name}Response", "Chunk")
        for message in file.message_types_by_name.values():
            assert re.fullmatch(r"([A-Z][a-z0-9]*)+", message.name)
            assert all(re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", field.name) for field in message.fields)
        for enum in file.enum_types_by_name.values():
            prefix = re.sub(r"(?<!^)([A-Z])", r"_\1", enum.name).upper() + "_"
            assert enum.values_by_number[0].name == f"{prefix}UNSPECIFIED"
            assert all(value.name.startswith(prefix) for value in enum.values)
