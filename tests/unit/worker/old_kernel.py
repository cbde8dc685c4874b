"""Run a command as on a kernel without Landlock and without new namespaces: `old_kernel.py COMMAND ...`."""

import os
import sys
from typing import Any

from rushes.worker.sandbox import seccomp
from rushes.worker.sandbox.kernel import prctl

changed: Any = vars(seccomp)
changed.update(_REFUSED={}, _WITHOUT_EFFECT=(), _ABSENT=((444, 444), (272, 97)))  # landlock_create_ruleset, unshare
prctl(38, 1)  # no new privileges: a filter needs them or root
seccomp.install()
os.execv(sys.argv[1], sys.argv[1:])
