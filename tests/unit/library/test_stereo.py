"""A film in 3D beside its original: ours, whoever died while laying it there."""

from pathlib import Path

import pytest

from rushes.domain.errors import Refused
from rushes.library import Library
from rushes.library.videos.stereo import _laid, check_output


def test_a_film_that_was_laid_by_somebody_who_died_is_known_as_ours(tmp_path: Path) -> None:
    blob, target = tmp_path / "blob", tmp_path / "x.3D.HSBS.mp4"
    blob.write_bytes(b"film")
    target.write_bytes(b"film")
    with Library(tmp_path / ".rushes") as library:
        with pytest.raises(Refused, match="already exists"):
            check_output(library.home, target)
        assert not _laid(library.home, blob, target)
        check_output(library.home, target)
