"""`invoker.core.unary`: an invocation that has all of its messages, and gives one value."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.context import Context
from invoker.core.budget import STEP_BYTES, Limits
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.policy import ErrorPolicy
from invoker.core.steps import EndInput, Feed, Open
from invoker.core.unary import Held, UnaryCall, UnaryInvocation
from invoker.errors import (
    DecodeError,
    Discarded,
    EncodeError,
    FunctionError,
    InvocationError,
    NotReady,
    Status,
    UnsupportedMediaType,
)
from invoker.message import Message, Output

JSON = "application/json"


def add(a: int, b: int) -> int:
    return a + b


def tagged(x: int) -> Any:
    return Output("other", x)


def addressed(x: int) -> Output:
    return Output("other", x)


def engine_of(*functions: Any) -> Engine:
    return Engine(Catalog([prepare_function(one).function for one in functions]), builtin(entry_points=False))


def call_of(*payloads: bytes, media_type: str = JSON, **more: Any) -> UnaryCall:
    return UnaryCall(Open("k", protocol="p", **more), [Message(one, {}, media_type) for one in payloads])


def opened(*payloads: bytes, function: Any = add, **more: Any) -> tuple[Engine, UnaryInvocation]:
    engine, call = engine_of(function), call_of(*payloads, **more)
    invocation = engine.open(call.open, plan=engine.plan(call.open), messages=call.messages)
    assert isinstance(invocation, UnaryInvocation)
    return engine, invocation


def decoded(one: UnaryInvocation, call: UnaryCall) -> list[Any]:
    decoders = one.decoders(call.messages)
    return [decode(message) for decode, message in zip(decoders, call.messages, strict=True)]


def test_it_decodes_one_value_of_each_input_and_encodes_one() -> None:
    """And counts both; those who look see streams that were fed and have ended."""
    engine, one = opened(b"30", b"4")
    assert decoded(one, call_of(b"30", b"4")) == [30, 4]
    assert (one.frames_in, one.bytes_in, one.frames_out, one.bytes_out) == (2, 3, 0, 0)
    made = one.encode(0, 34)
    assert made == (0, Message(b"34", {}, JSON))
    one.emit(*made)
    assert (one.frames_out, one.bytes_out) == (1, 2)
    assert [(each.fed, each.fed_bytes, each.is_ended, list(each.queue)) for each in one.inputs] == [
        (1, 2, True, []),
        (1, 1, True, []),
    ]
    assert [(each.emitted, each.emitted_bytes, each.is_ended) for each in one.outputs] == [(1, 2, False)]
    assert one.finish(None)
    assert [each.is_ended for each in one.outputs] == [True]
    assert (one.budget.frames, one.budget.bytes, one.wants_input) == (0, 0, True)
    assert one.budget.limits is engine.limits


def test_it_knows_what_its_context_and_its_caller_say() -> None:
    """As an invocation that takes streams."""
    engine, one = opened(b"1", b"2", metadata={"x-a": "b"}, configs=(1,))
    assert (one.id, one.key, one.protocol, one.peer) == (one.context.invocation_id, "k", "p", "")
    assert (one.context.function, one.context.metadata["x-a"], one.context.configs) == ("add", "b", (1,))
    assert engine.running == {one.id: one}
    assert engine.counters.opened == 1
    assert not one.is_starving


def test_what_cannot_be_decoded_is_an_error() -> None:
    """By its type, or by its bytes."""
    _, one = opened(b"1", b"x")
    with pytest.raises(DecodeError):
        decoded(one, call_of(b"1", b"x"))
    with pytest.raises(UnsupportedMediaType):
        decoded(one, call_of(b"1", b"2", media_type="application/x-doom"))


def test_an_addressed_value_goes_to_the_only_output() -> None:
    """By its index or name; any other address is an error, or dropped where the caller did not list it."""
    _, one = opened(b"1", function=tagged)
    assert one.encode(0, Output(0, 5))[1].payload == b"5"
    assert one.encode(0, Output(one.outputs[0].name, 6))[1].payload == b"6"
    with pytest.raises(EncodeError):
        one.encode(0, Output("other", 5))
    one.drops_unlisted = True
    with pytest.raises(Discarded):
        one.encode(0, Output("other", 5))


def test_R117_only_the_first_ending_counts() -> None:
    """The policy of errors applies to it, and nobody can end it any more."""
    seen: list[Any] = []

    class Policy(ErrorPolicy):
        def apply(self, error: InvocationError, protocol: str = "") -> None:
            seen.append((error, protocol))

    engine, call = engine_of(add), call_of(b"1", b"2")
    plan = engine.plan(call.open)
    one = UnaryInvocation(plan, "k", Context("i7", "add"), Limits(), Policy(), call.messages)
    one.protocol = "p"
    one.may_be_ended(seen.append)
    error = FunctionError("boom")
    one.stop(error)
    assert seen == [error]
    assert one.finish(error)
    assert seen == [error, (error, "p")]
    assert not one.finish(None)
    one.stop(error)
    assert (one.error, one.is_finished, one.end, len(seen)) == (error, True, None, 2)
    assert one.took_s > 0


def test_it_is_admitted_as_any_other() -> None:
    """Or counted as refused."""
    engine = engine_of(add)
    call = call_of(b"1", b"2")
    plan = engine.plan(call.open)
    engine.is_loading = True
    with pytest.raises(NotReady):
        engine.open(call.open, plan=plan, messages=call.messages)
    assert (engine.counters.refused, engine.counters.opened, engine.running) == (1, 0, {})
    engine.is_loading = False
    one = engine.open(call.open, plan=plan, messages=call.messages, deadline=5.0)
    assert one.context.deadline == 5.0
    one.finish(None)
    engine.close(one)
    assert (engine.running, engine.counters.finished, engine.counters.frames_in) == ({}, {Status.OK: 1}, 2)


def test_which_plans_are_of_this_kind() -> None:
    """Of functions that map payloads to one value, whose output is read; they may ask their context."""
    engine = engine_of(add)
    assert engine.plan(Open("k")).is_unary
    assert not engine.plan(Open("k", unwanted=(0,))).is_unary
    assert engine_of(addressed).plan(Open("k")).is_unary
    assert not engine_of(addressed).plan(Open("k", accepts=())).is_unary

    def asks(x: int, ctx: Context) -> int:
        return x

    def streams(x: int) -> Any:
        yield x

    def message(x: Message[int]) -> int:
        return x.payload

    assert engine_of(asks).plan(Open("k")).is_unary
    for other in (streams, message):
        assert not engine_of(other).plan(Open("k")).is_unary


def test_what_is_held_is_one_message_of_each_input_in_their_order() -> None:
    """And their end; anything else is no unary call, and what was held is done as it came."""

    def held(*steps: Any, most_bytes: int = 10, most: int = 2) -> tuple[list[bool], Held]:
        engine = engine_of(add)
        one = Held(engine.plan(Open("k")), Open("k"), Limits(hard_bytes=most_bytes, hard_frames=most))
        return [one.takes(step) for step in steps], one

    def feed(index: int, payload: bytes = b"1") -> Feed:
        return Feed("k", index, Message(payload, {}, JSON))

    taken, one = held(feed(0), feed(1, b"2"), EndInput("k"))
    assert (taken, len(one.messages), one.has_ended) == ([True] * 3, 2, True)
    assert one.steps == [Open("k"), feed(0), feed(1, b"2"), EndInput("k")]
    assert held(feed(0))[1].steps == [Open("k"), feed(0)]
    assert held(feed(0), feed(0))[0] == [True, False]
    assert held(feed(1))[0] == [False]
    assert held(feed(0), feed(1), feed(2))[0] == [True, True, False]
    assert held(feed(0), EndInput("k"), feed(1))[0] == [True, True, False]
    assert held(feed(0), EndInput("k", 0))[0] == [True, False]
    assert held(feed(0, bytes(6)), feed(1, bytes(6)))[0] == [True, False]
    assert held(feed(0), feed(1), most=1)[0] == [True, False]
    large = held(feed(0, bytes(STEP_BYTES + 1)), most_bytes=1 << 20)[0]
    assert large == [False]  # its bytes count against the memory of the process
    assert len(held(feed(0))[1].messages) == 1
