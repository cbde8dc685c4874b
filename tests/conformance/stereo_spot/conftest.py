"""The site on which the client of this document runs."""

import pytest

from tests.conformance.conftest import Site, Sites


@pytest.fixture(scope="session")
def site(sites: Sites) -> Site:
    return sites("stereo_spot")
