"""Lets the threads of every driver leave when a test is over."""

import sys
from collections.abc import Iterator

import pytest

from tests.execution import memory


@pytest.fixture(autouse=True)
def _closed_drivers() -> Iterator[None]:
    yield
    while memory.drivers:
        memory.drivers.pop().threads.close()


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads hand over the interpreter as often as they can, so that each order of events comes up soon."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)
