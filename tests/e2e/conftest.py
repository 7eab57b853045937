"""Fixtures that tests of several files share: servers of the functions of the module that a test names by `MODULE`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving import Served, serving


@pytest.fixture(scope="module")
def alone(request: pytest.FixtureRequest) -> Iterator[Served]:
    """Sync functions without async ones beside them, for which HTTP and gRPC have threads that answer by themselves."""
    with serving(request.module.MODULE) as served:
        yield served


@pytest.fixture(scope="module")
def together(request: pytest.FixtureRequest) -> Iterator[Served]:
    """The same beside async ones, of the module with ``_async`` behind its name."""
    with serving(f"{request.module.MODULE}_async") as served:
        yield served
