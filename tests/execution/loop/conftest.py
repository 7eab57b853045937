"""Fixtures of conversations that hold one invocation together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.execution.scripted import FakeCall
from tests.execution.shared import House, PlainCall


@pytest.fixture(params=[FakeCall, PlainCall])
async def house(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., House]]:
    made: list[House] = []

    def make(*functions: Any) -> House:
        made.append(House(request.param, *functions))
        return made[-1]

    yield make
    for one in made:
        await one.close()
