"""Generates the packages of clients/ from the contracts in openapi/, and builds them as wheels into a folder.

The generated code is not kept in the repository: the contracts are, and a test compares them with the program.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = {"rushes": "rushes.yaml", "rushes-ml": "ml.yaml"}  # folder of clients/ -> contract


def main(argv: list[str]) -> int:
    """Build all clients into the folder that is named, dist/ otherwise."""
    out = Path(argv[0] if argv else ROOT / "dist").resolve()
    for name in CLIENTS:
        with TemporaryDirectory() as scratch:
            build(name, Path(scratch), out)
    return 0


def build(name: str, scratch: Path, out: Path) -> None:
    """Generate one client in a scratch folder, and build its wheel."""
    folder = scratch / name
    shutil.copytree(ROOT / "clients" / name, folder)
    generate(name, folder / f"{name}-client".replace("-", "_"))
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)], cwd=folder, check=True)


def generate(name: str, package: Path) -> None:
    """Write the package of a client; what its generator cannot express is an error."""
    contract, config = ROOT / "openapi" / CLIENTS[name], ROOT / "clients" / name / "generator.yaml"
    argv = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"]
    files = ["--path", str(contract), "--config", str(config), "--output-path", str(package)]
    subprocess.run([*argv, *files], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
