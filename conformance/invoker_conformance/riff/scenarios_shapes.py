"""Shapes of functions: request/reply, streaming, sources, sinks, several inputs and outputs. Catalogue 2.3."""

from __future__ import annotations

from typing import Any

import grpc

from invoker_conformance.riff.frames import JSON
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import UE, UIE
from invoker_conformance.scenario import NotProvided, breaking, scenario


@scenario("R-015", function="square")
async def health_service(probe: Probe) -> None:
    """The standard health service says SERVING, where it is offered."""
    method: Any = probe.target.channel(probe.function).unary_unary("/grpc.health.v1.Health/Check")
    try:
        answer = await method(b"", timeout=probe.timeout_s)
    except grpc.aio.AioRpcError as error:
        raise NotProvided(f"health check: {error.code().name}") from None
    if answer != b"\x08\x01":
        raise NotProvided(f"health check: {answer!r}")


@scenario("RT-01", "R-030", "R-031", "R-098", "R-105", "R-136", "R-137", function="square")
async def square_json(probe: Probe) -> None:
    """A request/reply function gives a result for each value, in order, on output 0, as JSON."""
    async with probe.call() as call:
        await call.all(2, 3, inputs=["a"], outputs=["b"])
        for frame in await call.gives(4, 9):
            if frame.resultIndex != 0 or frame.contentType.partition(";")[0] != JSON:
                raise call.failure(f"({frame.resultIndex}, {frame.contentType!r})", f"(0, {JSON!r})")


@scenario("R-031", "R-050", function="square")
async def replies_come_one_by_one(probe: Probe) -> None:
    """Each reply comes before the next request is sent."""
    async with probe.call() as call:
        await call.start()
        for number in range(20):
            await call.json(number)
            await call.begins(number * number)
        await call.half_close()
        await call.gives()


@scenario("R-034", function="delay")
async def awaited_replies_keep_their_order(probe: Probe) -> None:
    """An async request/reply function is awaited; a slow first value still comes first."""
    await probe.call_gives([0.2, 0.0, 0.1], [0.2, 0.0, 0.1])


@scenario("RT-52", "R-033", "R-113", "R-119", function=("reciprocal", "marks"))
async def request_reply_raises_on_third(probe: Probe) -> None:
    """Replies before the error are delivered, the input after it is not processed."""
    watch = await probe.watch("reciprocal.calls")
    async with probe.call() as call:
        await call.all(1, 2, 0, 4)
        got = [call.json_of(frame) for frame in await call.fails(UE, after=2)]
        if got != [100, 50]:
            raise call.failure(f"{got}", "[100, 50]")
    await watch.stays("reciprocal.calls", by=3)


@scenario("R-029", "R-157", function=("total", "marks"))
async def one_call_of_a_streaming_function(probe: Probe) -> None:
    """One call of the method is one call of the function, with no, one or many frames."""
    watch = await probe.watch("total.calls", "total.completed")
    for numbers in ((), (1,), (1, 2, 3)):
        await probe.call_gives(numbers, [sum(numbers)])
    await watch.stays("total.calls", by=3)
    await watch.stays("total.completed", by=3)


@scenario("RT-04", "R-037", function="source")
async def source_needs_no_input(probe: Probe) -> None:
    """A source gives its values and ends with OK while the caller is still open."""
    async with probe.call() as call:
        await call.start(inputs=[])
        await call.gives(1, 2, 3)


@scenario("RT-58", "R-058", function=("sink", "marks"))
async def sink_without_output(probe: Probe) -> None:
    """A function without outputs ends with OK and no frame, once it has read its input."""
    watch = await probe.watch("sink.values")
    await probe.call_gives([1, "two", []], [], types=[], inputs=["a"], outputs=[])
    await watch.stays("sink.values", by=3)


@scenario("RT-59", "R-050", "R-126", function="greeting")
async def greeting_before_input(probe: Probe) -> None:
    """A function may emit before it reads, and the caller has it before it sends data."""
    async with probe.call() as call:
        await call.start()
        await call.begins("hello")
        await call.json("you")
        await call.begins("you")
        await call.half_close()
        await call.gives()


@scenario("RT-60", "R-126", function="hundred")
async def hundred_values_then_one(probe: Probe) -> None:
    """A function that emits once per hundred inputs does so at the hundredth, without a half-close."""
    async with probe.call() as call:
        await call.start()
        await call.json(*range(99))
        await call.silent(0.2)
        await call.json(99)
        await call.begins(4950)


@scenario("RT-53", "R-119", function="refuse")
async def raise_at_call(probe: Probe) -> None:
    """An exception that comes before the function has returned its stream has a prefix of its own."""
    await probe.call_fails(UIE, "refused")


@scenario("RT-56", "R-111", function="two_outputs")
async def last_output_completes(probe: Probe) -> None:
    """With two finite outputs the call ends with OK after both."""
    async with probe.call() as call:
        await call.all([2, 300], types=[JSON, JSON], inputs=["plan"], outputs=["left", "right"])
        got, ending = await call.rest()
        counts = [sum(frame.resultIndex == index for frame in got) for index in (0, 1)]
        if ending.code is not grpc.StatusCode.OK or counts != [2, 300]:
            raise call.failure(f"{counts} frames of the outputs, then {ending}", "[2, 300] frames, then OK")


@scenario("RT-54", "R-111", "R-115", function=("two_outputs", "marks"))
async def one_output_ends_the_other_goes_on(probe: Probe) -> None:
    """When one output has ended, the endless other one continues until the cancel."""
    watch = await probe.watch("two_outputs.calls", "two_outputs.closed")
    async with probe.call() as call:
        await call.start([JSON, JSON], ["plan"], ["left", "right"])
        await call.json([1, -1])
        seen = [await call.frame() for _ in range(300)]
        lefts = [frame for frame in seen if frame.resultIndex == 0]
        rights = [call.json_of(frame) for frame in seen if frame.resultIndex == 1]
        if len(lefts) != 1 or rights != list(range(299)):
            raise call.failure(f"{len(lefts)} frames of output 0, {len(rights)} of output 1", "1 and 299, in order")
        call.cancel()
    with breaking("R-115"):
        await watch.reaches("two_outputs.closed", "two_outputs.calls")


@scenario("RT-55", "R-112", function=("two_outputs", "marks"))
async def error_in_second_output(probe: Probe) -> None:
    """An error on one output ends the call within 1 s, the endless other output is closed."""
    watch = await probe.watch("two_outputs.calls", "two_outputs.closed")
    async with probe.call() as call:
        await call.start([JSON, JSON], ["plan"], ["left", "right"])
        await call.json([-1, -2])
        clock = probe.clock()
        await call.fails(UE, "boom")
        if (took := probe.clock() - clock) > 1.0:
            raise call.failure(f"the status after {took:.1f} s", "the status within 1 s")
    await watch.reaches("two_outputs.closed", "two_outputs.calls")


@scenario("R-131", function="two_outputs")
async def outputs_are_merged_fairly(probe: Probe) -> None:
    """An endless fast output does not starve the other one, whichever is which."""
    for plan in ([-1, 20], [20, -1]):
        finite = plan.index(20)
        async with probe.call() as call:
            await call.start([JSON, JSON], ["plan"], ["left", "right"])
            await call.json(plan)
            seen = 0
            for _ in range(5000):
                seen += (await call.frame()).resultIndex == finite
                if seen == 20:
                    break
            else:
                raise call.failure(f"{seen} frames of output {finite} among 5000", "its 20 frames")
