"""Lets the threads of every driver leave when a test is over."""

from collections.abc import Iterator

import pytest

from tests.execution import memory


@pytest.fixture(autouse=True)
def _closed_drivers() -> Iterator[None]:
    yield
    while memory.drivers:
        memory.drivers.pop().threads.close()
