"""Fixtures of nested calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.execution.nested.world import World


@pytest.fixture
async def world() -> AsyncIterator[Callable[..., World]]:
    """Makes worlds, in which nothing may run when the test is over."""
    made: list[World] = []

    def make(*functions: object, **settings: int) -> World:
        made.append(World(*functions, **settings))
        return made[-1]

    yield make
    for one in made:
        await one.close()
