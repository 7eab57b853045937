"""Values that a function sends by the name of an output reach riff's and Evergreen's callers alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from invoker import Context, function
from invoker.client import EvergreenSession, RiffClient
from tests.serving import Served, serving


@function(outputs=("answer", "log"))
def only_sends(x: str, ctx: Context) -> None:
    """All of its values by name."""
    for one in "abc":
        ctx.outputs["answer"].send(one)
        ctx.outputs["log"].send({"was": one})


@function(outputs=("answer", "log"))
def sends_and_returns(x: str, ctx: Context) -> str:
    """One value returned, others sent before it."""
    ctx.outputs["answer"].send("a")
    ctx.outputs["answer"].send("b")
    for one in "abc":
        ctx.outputs["log"].send({"was": one})
    return "c"


@function(outputs=("answer", "log"))
async def sends_async(x: str, ctx: Context) -> None:
    """The same on the loop."""
    for one in "abc":
        await ctx.outputs["answer"].send(one)
        await ctx.outputs["log"].send({"was": one})


@function(outputs=("answer", "log"))
def says_nothing_of_what_it_returns(x, ctx: Context):
    """As an author writes it who leaves annotations out."""
    for one in "abc":
        ctx.outputs["answer"].send(one)
        ctx.outputs["log"].send({"was": one})


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("tests.e2e.test_sent_values") as one:
        yield one


@pytest.mark.parametrize("name", ["only_sends", "sends_and_returns", "sends_async", "says_nothing_of_what_it_returns"])
async def test_ET94_riff_and_evergreen_get_the_same_values(served: Served, name: str) -> None:
    """All three on each output (E-126), where Evergreen had the first one only."""
    log = [{"was": one} for one in "abc"]
    async with RiffClient(served.grpc) as client:
        accept = ["text/plain", "application/json"]
        found = [one async for one in client.invoke([["x"]], accept=accept, function=name)]
    assert "".join(one.value for one in found if one.index == 0) == "abc"
    assert [one.value for one in found if one.index == 1] == log
    async with EvergreenSession(served.grpc) as session:
        answer = session.act(name, {"x": "x"}, outputs=["answer", "log"])
        assert await answer["answer"].text() == "abc"
        assert await answer["log"].items() == log
