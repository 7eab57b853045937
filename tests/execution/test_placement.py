"""`invoker.execution.placement`: where the body of a function runs."""

from __future__ import annotations

from collections.abc import AsyncIterator

from invoker.author.prepare import prepare_function
from invoker.execution.placement import Placement, placement_of
from tests.execution.memory import driver_of


def square(x: int) -> int:
    return x * x


async def agen(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x


def test_one_function_decides_where_a_body_runs():
    """A sync function has its call's own thread only where no function of the process needs the loop."""
    sync, other = prepare_function(square).spec, prepare_function(agen).spec
    assert placement_of(sync) is placement_of(sync, [sync]) is Placement.CALL
    assert placement_of(sync, [sync, other]) is Placement.POOL
    assert placement_of(other) is placement_of(other, [sync]) is Placement.LOOP
    assert [driver_of(*some).is_direct for some in ((square,), (agen,), (square, agen))] == [True, False, False]
