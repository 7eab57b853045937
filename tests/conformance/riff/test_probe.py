"""`Probe` and `Watch`: marks of the function's process."""

from __future__ import annotations

import pytest

from invoker_conformance.scenario import Failure, NotProvided
from tests.conformance.riff.test_call import probing


async def test_a_watch_sees_counts_grow() -> None:
    """Relative to when it began."""
    async with probing("square") as probe:
        await probe.survives()
        watch = await probe.watch("square.calls")
        async with probe.call() as call:
            await call.start()
            await call.json(1, 2)
            await call.half_close()
            await call.gives(1, 4)
        await watch.stays("square.calls", by=2)
        await watch.reaches("square.calls", 1)
        assert await probe.mark("square.calls") == 2


async def test_a_count_that_does_not_grow_fails() -> None:
    """With what the judged call was sent, not what the marks were asked."""
    async with probing("square") as probe:
        watch = await probe.watch("square.calls", "total.calls")
        async with probe.call() as call:
            await call.start()
        with pytest.raises(Failure, match=r"grew by 0 within 0\.1 s") as caught:
            await watch.reaches("square.calls", 1, within_s=0.1)
        assert caught.value.sent == "S(application/json; in; out)"
        with pytest.raises(Failure, match="expected that it grew by 3"):
            await watch.stays("total.calls", by=3)


async def test_a_call_that_completes_is_not_cut_off() -> None:
    """Though as many have failed as was asked."""
    async with probing("total") as probe:
        watch = await probe.watch("total.calls", "total.failed", "total.completed")
        await watch.is_cut_off("total")
        await probe.call_gives([1, 2], [3])
        with pytest.raises(Failure, match="grew by 1; expected that it grew by 0"):
            await watch.is_cut_off("total", 0)


async def test_http_needs_an_address() -> None:
    """Without one it is not provided."""
    async with probing("square") as probe:
        with pytest.raises(NotProvided):
            _ = probe.transport
