"""Frame grammar and StartFrame: catalogue 2.4, and the method itself."""

from __future__ import annotations

from typing import Any

import grpc

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker_conformance.riff import frames
from invoker_conformance.riff.frames import JSON, TEXT
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import PV
from invoker_conformance.scenario import Failure, scenario

_UNKNOWN_FIELD = b"\xa2\x06\x05later"  # field 100, length-delimited


@scenario("R-007", function="square")
async def only_the_invoke_method_is_served(probe: Probe) -> None:
    """Another method of the service is UNIMPLEMENTED."""
    method: Any = probe.target.channel(probe.function).stream_stream("/streaming.Riff/Summon")
    call = method(metadata=probe.target.metadata(probe.function) or None, timeout=probe.timeout_s)
    await call.done_writing()
    if (code := await call.code()) is not grpc.StatusCode.UNIMPLEMENTED:
        raise Failure(code.name, "UNIMPLEMENTED", "a call of /streaming.Riff/Summon")


@scenario("RT-06", "R-045", "R-013", function=("square", "marks"))
async def data_first(probe: Probe) -> None:
    """A first signal that is data fails the call, the function is not called, the next call works."""
    watch = await probe.watch("square.calls")
    async with probe.call() as call:
        await call.json(1)
        await call.fails(PV, after=0)
    await watch.stays("square.calls")
    await probe.survives()


@scenario("RT-07", "R-046", function="square")
async def second_start(probe: Probe) -> None:
    """A second StartFrame fails the call; the detail lists the rejected types and names."""
    async with probe.call() as call:
        await call.start()
        await call.start([TEXT], ["rejected-in"], ["rejected-out"])
        await call.fails(PV, TEXT, "rejected-in", "rejected-out", after=0)


@scenario("RT-08", "R-046", function="square")
async def start_after_data(probe: Probe) -> None:
    """A StartFrame after data fails the call; the first result may come before."""
    async with probe.call() as call:
        await call.start()
        await call.json(3)
        await call.start([TEXT], ["rejected-in"], ["rejected-out"])
        got = await call.fails(PV, TEXT)
        if len(got) > 1:
            raise call.failure(f"{len(got)} frames", "at most the first result")


@scenario("RT-09", "R-047", function="square")
async def empty_signal_after_start(probe: Probe) -> None:
    """A signal with neither case set fails the call."""
    async with probe.call() as call:
        await call.start()
        await call.signal(pb.InputSignal())
        await call.fails(PV, after=0)


@scenario("RT-09", "R-047", "R-045", function="square")
async def empty_signal_first(probe: Probe) -> None:
    """A first signal with neither case set fails the call."""
    async with probe.call() as call:
        await call.signal(pb.InputSignal())
        await call.fails(PV, after=0)


@scenario("RT-10", "R-048", function="square")
async def half_close_immediately(probe: Probe) -> None:
    """A half-close without any signal fails the call within 2 s."""
    async with probe.call() as call:
        await call.half_close()
        await call.fails(PV, after=0, timeout_s=2.0)


@scenario("RT-03", "R-049", "R-032", "R-135", function=("square", "marks"))
async def start_then_half_close(probe: Probe) -> None:
    """A request/reply function gives no output for no input, ends with OK, and is not called."""
    watch = await probe.watch("square.calls")
    await probe.call_gives([], [], inputs=["a"], outputs=["b"])
    await watch.stays("square.calls")


@scenario("RT-05", "R-049", "R-109", "R-134", function="total")
async def aggregator_on_empty_input(probe: Probe) -> None:
    """An aggregator gives its result for empty input."""
    await probe.call_gives([], [0], inputs=["a"], outputs=["b"])


@scenario("R-051", function="greeting")
async def nothing_before_start(probe: Probe) -> None:
    """No frame comes while the StartFrame is delayed by 500 ms, though the function greets without input."""
    async with probe.call() as call:
        await call.silent(0.5)
        await call.start()
        await call.begins("hello")


@scenario("RT-11", "R-052", function="square")
async def too_many_types(probe: Probe) -> None:
    """More expected types than outputs fail the call; the detail holds both numbers."""
    await probe.call_fails(PV, "3", "1", types=[TEXT, TEXT, TEXT], inputs=["a"], outputs=["b", "c", "d"])


@scenario("R-052", function="two_outputs")
async def too_few_types(probe: Probe) -> None:
    """Fewer expected types than outputs fail the call."""
    async with probe.call() as call:
        await call.all([1, 1], types=[JSON], inputs=["a"], outputs=["b"])
        await call.fails(PV, "1", "2", after=0)


@scenario("R-052", function="square")
async def no_types_for_one_output(probe: Probe) -> None:
    """No expected types for a function with an output fail the call."""
    async with probe.call() as call:
        await call.all(2, types=[], inputs=["a"], outputs=[])
        await call.fails(PV, "0", "1", after=0)


@scenario("RT-12", "R-053", function="square")
async def types_and_names_disagree(probe: Probe) -> None:
    """Output names in another number than expected types fail the call."""
    await probe.call_fails(PV, "2", "1", types=[JSON], inputs=["a"], outputs=["b", "c"])


@scenario("RT-13", "R-055", function="pairs")
async def input_names_disagree_with_arity(probe: Probe) -> None:
    """Three input names for a function with two inputs fail the call; the detail holds both numbers."""
    await probe.call_fails(PV, "3", "2", types=[JSON], inputs=["a", "b", "c"], outputs=["o"])


@scenario("R-055", function="pairs")
async def too_few_input_names(probe: Probe) -> None:
    """One input name for a function with two inputs fails the call."""
    await probe.call_fails(PV, "1", "2", types=[JSON], inputs=["a"], outputs=["o"])


@scenario("RT-02", "R-054", function="square")
async def unnamed_streams(probe: Probe) -> None:
    """A caller that sends types but no names is served."""
    await probe.call_gives([5], [25], types=[JSON], inputs=[], outputs=[])


@scenario("R-057", function="pairs")
async def odd_names(probe: Probe) -> None:
    """Duplicate, empty, spaced and unicode names are accepted."""
    for inputs, output in ((["a", "a"], ""), (["", " "], "日本 ü"), (["Ünï côde", "a;b,c"], "a\tb")):
        async with probe.call() as call:
            await call.start([JSON], inputs, [output])
            await call.json(1, index=0)
            await call.json(2, index=1)
            await call.half_close()
            await call.gives([1, 2])


@scenario("R-038", "R-059", "R-012", function="names")
async def names_reach_the_function(probe: Probe) -> None:
    """The names and types of its own StartFrame reach the function, those of an earlier call do not."""
    sent: tuple[tuple[list[str], list[str], list[str]], ...] = (
        ([f"{JSON}, {TEXT}"], ["numbers"], ["result"]),
        ([JSON], [], []),
    )
    for types, inputs, outputs in sent:
        await probe.call_gives(
            [None],
            [{"inputs": inputs, "outputs": outputs, "accepts": types}],
            types=types,
            inputs=inputs,
            outputs=outputs,
        )


@scenario("R-160", function="square")
async def unknown_fields(probe: Probe) -> None:
    """Unknown fields in signals and frames, as a newer peer may send, are ignored."""
    async with probe.call() as call:
        await call.signal(pb.InputSignal.FromString(frames.start().SerializeToString() + _UNKNOWN_FIELD))
        inner = frames.data(b"4").data.SerializeToString() + _UNKNOWN_FIELD
        await call.raw(b"\x12" + bytes([len(inner)]) + inner, "D(0, json, 4) with an unknown field 100 in the frame")
        await call.half_close()
        await call.gives(16)


@scenario("RT-62", "R-120", "R-013", function="square")
async def garbage_on_the_wire(probe: Probe) -> None:
    """Bytes that are not a protobuf message fail only their call, as the first signal and as a later one."""
    async with probe.call() as call:
        await call.raw(b"\xff\xff\xff")
        await call.fails(PV, after=0)
    async with probe.call() as call:
        await call.start()
        await call.raw(b"\xff\xff\xff")
        await call.fails(PV, after=0)
    await probe.survives()


@scenario("RT-63", "R-120", "R-013", function="square")
async def invalid_utf8_in_a_string_field(probe: Probe) -> None:
    """A contentType that is not UTF-8 fails only its call."""
    async with probe.call() as call:
        await call.start()
        await call.raw(b"\x12\x06\x0a\x011\x12\x01\xff", "D(0, type of the byte FF, 1)")
        await call.fails(PV, after=0)
    await probe.survives()


@scenario("R-012", "R-013", "R-125", function=("total", "square"))
async def a_failed_call_leaves_others_alone(probe: Probe) -> None:
    """A call that is open while others fail gives its result."""
    async with probe.call() as bystander:
        await bystander.start()
        await bystander.json(1, 2)
        for media_type, payload in (("application/x-doom", b"1"), (JSON, b"{")):
            async with probe.call("square") as call:
                await call.start()
                await call.data(payload, media_type)
                await call.rest()
        async with probe.call("square") as call:
            await call.json(1)
            await call.rest()
        await bystander.json(3)
        await bystander.half_close()
        await bystander.gives(6)
