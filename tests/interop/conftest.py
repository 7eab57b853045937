"""Servers for the foreign clients; each lives for one file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.tools import leave
from tests.serving import Served, serving


@pytest.fixture(scope="session", autouse=True)
def _no_program_left() -> Iterator[None]:
    """Programs that answer several tests end with the last."""
    yield
    leave()


@pytest.fixture(scope="module")
def square() -> Iterator[Served]:
    """`functions.square:square`."""
    with serving("functions.square:square") as served:
        yield served


@pytest.fixture(scope="module")
def repeat() -> Iterator[Served]:
    """`functions.repeat:repeat`."""
    with serving("functions.repeat:repeat") as served:
        yield served


@pytest.fixture(scope="module")
def named() -> Iterator[Served]:
    """The catalogue of named functions, chosen by the metadata `invoker-function`."""
    with serving("functions.conformance") as served:
        yield served
