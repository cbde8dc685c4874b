"""Prints the sandbox layers of this machine as JSON: `python -m rushes.worker.sandbox [FOLDER ...]`.

The folders are those that a slot must be able to read; the current folder stands for its scratch.
"""

import json
import sys
from pathlib import Path

from rushes.worker.sandbox import Confinement, confine

if __name__ == "__main__":
    sys.stdout.write(json.dumps(confine(Confinement(read=sys.argv[1:]), Path.cwd())))
