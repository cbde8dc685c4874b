"""Property tests drive the same backends as the contract suites."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.with_name("contract")))
