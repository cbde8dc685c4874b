"""`python -m rushes` is the command line."""

from rushes.surfaces.cli.main import main

main(prog_name="rushes")
