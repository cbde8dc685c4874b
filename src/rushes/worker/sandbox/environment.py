"""The environment of a slot: an allow-list of names, so that it contains no secrets of the worker."""

import os
from collections.abc import Mapping
from pathlib import Path

_PASSED = frozenset(
    """PATH LANG LANGUAGE TZ PYTHONPATH PYTHONHOME PYTHONHASHSEED PYTHONMALLOC PYTHONWARNINGS PYTHONPYCACHEPREFIX
    PYTHONDONTWRITEBYTECODE LD_LIBRARY_PATH
    IMAGEIO_FFMPEG_EXE TESSDATA_PREFIX OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS MALLOC_ARENA_MAX
    MALLOC_TRIM_THRESHOLD_ MALLOC_MMAP_THRESHOLD_ KMP_AFFINITY OMP_PROC_BIND
    OPENBLAS_CORETYPE MKL_CBWR MKL_ENABLE_INSTRUCTIONS DNNL_MAX_CPU_ISA ONEDNN_MAX_CPU_ISA CT2_FORCE_CPU_ISA
    NPY_DISABLE_CPU_FEATURES NPY_ENABLE_CPU_FEATURES""".split()  # noqa: SIM905 - read as a list
)  # the last two lines choose how sums are rounded: a slot must round as an inference service here does


def reduced(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """What a slot needs of the worker's environment; its home and its temporary files are in the scratch."""
    passed = {name: value for name, value in environment.items() if name in _PASSED or name.startswith("LC_")}
    if "PYTHONPATH" in passed:  # a slot is started in another folder
        passed["PYTHONPATH"] = os.pathsep.join(str(Path(part).absolute()) for part in _parts(passed["PYTHONPATH"]))
    return passed | {"HOME": str(scratch), "TMPDIR": str(scratch), "XDG_CACHE_HOME": str(scratch)}


def _parts(path: str) -> list[str]:
    return [part for part in path.split(os.pathsep) if part]
