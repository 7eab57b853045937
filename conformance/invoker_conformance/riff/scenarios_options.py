"""Options: parameters with defaults are inputs that may be left out; single values come once. Catalogue 2.14."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from invoker_conformance.riff.frames import JSON
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import PV
from invoker_conformance.scenario import scenario


@scenario("R-164", "R-167", "R-032", function="greet")
async def every_parameter_has_a_default(probe: Probe) -> None:
    """Each value gives a result; without any value the function is called once, with its default."""
    await probe.call_gives(["Bob", "Ann"], ["hello Bob", "hello Ann"])
    await probe.call_gives([], ["hello world"])


@scenario("R-164", "R-165", function="scale")
async def options_by_name_and_by_index(probe: Probe) -> None:
    """Options count for the whole call, in any order of their names; options that are left out keep their defaults."""
    await _gives(probe, ["x"], [(0, 1), (0, 2)], [2, 4])
    await _gives(probe, ["x", "by"], [(1, 10), (0, 1), (0, 2)], [10, 20])
    await _gives(probe, ["x", "plus", "by"], [(2, 10), (1, 1), (0, 1), (0, 2)], [11, 21])
    await _gives(probe, [], [(1, 10), (2, 1), (0, 1), (0, 2)], [11, 21])


@scenario("R-165", function="scale")
async def names_that_are_no_options(probe: Probe) -> None:
    """A further input name that is not an option, or more names than inputs, fail the call."""
    for names in (["x", "bye"], ["x", "by", "plus", "more"]):
        await probe.call_fails(PV, sent=[1], inputs=names)


@scenario("R-166", function="scale")
async def announced_options_are_awaited(probe: Probe) -> None:
    """The function is not called before an announced option has come, or the half-close shows that it will not come."""
    async with probe.call() as call:
        await call.start(inputs=["x", "by"])
        await call.json(1, 2)
        await call.silent(0.2)
        await call.json(10, index=1)
        await call.half_close()
        await call.gives(10, 20)
    await _gives(probe, ["x", "by"], [(0, 1)], [2])


@scenario("R-166", function="scale")
async def options_without_names_come_first(probe: Probe) -> None:
    """Without names, an option after the first value of the required input fails the call, and the error names it."""
    async with probe.call() as call:
        await call.start(inputs=[])
        await call.json(1)
        await call.json(10, index=1)
        await call.half_close()
        await call.fails(PV, "by")


@scenario("R-167", "R-168", function="scale")
async def an_option_comes_once(probe: Probe) -> None:
    """A second frame of an option fails the call; the detail names it."""
    async with probe.call() as call:
        await call.start(inputs=["x", "by"])
        await call.json(2, 3, index=1)
        await call.half_close()
        await call.fails(PV, "by", after=0)


@scenario("R-168", "R-135", function="take")
async def a_single_value_comes_once(probe: Probe) -> None:
    """A surplus frame of a single-valued input fails the call; without any the input is empty, and the status OK."""
    async with probe.call() as call:
        await call.start(inputs=["values", "count"])
        await call.json(2, 3, index=1)
        await call.half_close()
        await call.fails(PV, "2", after=0)
    await probe.call_gives([], [], inputs=["values", "count"])


async def _gives(
    probe: Probe, names: Sequence[str], values: Sequence[tuple[int, Any]], expected: Sequence[Any]
) -> None:
    async with probe.call() as call:
        await call.start([JSON], names)
        for index, value in values:
            await call.json(value, index=index)
        await call.half_close()
        await call.gives(*expected)
