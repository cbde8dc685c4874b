"""`rushes` and `python -m rushes` are the command line; Ctrl-C while it is still being read leaves no trace."""

import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        from rushes.surfaces.cli.main import main as command  # noqa: PLC0415 - this takes long enough to be interrupted
    except KeyboardInterrupt:
        sys.exit(130)
    command(prog_name="rushes")


if __name__ == "__main__":
    main()
