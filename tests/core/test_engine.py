"""Admission, negotiation and counting."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.budget import Unread
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.steps import Feed, Open, Terms
from invoker.core.streams import Limits
from invoker.errors import (
    LimitExceeded,
    NotAcceptable,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    UnsupportedMediaType,
)
from invoker.message import Message, Output


def square(x: int) -> int:
    return x * x


def add(a: int, b: int) -> int:
    return a + b


def tagged(xs: Iterator[int]) -> Iterator[Output]:
    yield from ()


def many(*streams: Iterator[int]) -> Iterator[int]:
    yield from ()


def sink(xs: Iterator[int]) -> None:
    return None


@function(input_types="image/png", output_types="image/png")
def paint(image: bytes) -> bytes:
    return image


def engine_of(*functions, **settings):
    return Engine(
        Catalog([prepare_function(one).function for one in functions]), builtin(entry_points=False), **settings
    )


def test_RM1_opening_checks_arity_and_accepts_before_the_function_runs():
    """Negotiation and arity are settled when an invocation is opened, and a refusal is counted."""
    engine = engine_of(square)
    opened = engine.open(Open("a", accepts=("text/plain",), input_names=("n",), output_names=("m",)))
    assert opened.context.accepts == ("text/plain",)
    assert opened.context.input_names == ("n",)
    assert [output.name for output in opened.outputs] == ["m"]
    for wrong in (Open("b", accepts=("text/zglorbf",)), Open("c", accepts=())):
        with pytest.raises((NotAcceptable, ProtocolViolation)):
            engine.open(wrong)
    assert engine.counters.refused == 2
    assert len(engine.running) == 1


def test_R052_the_count_of_content_types_is_the_count_of_outputs():
    """A mismatch with a known arity names both numbers."""
    with pytest.raises(ProtocolViolation, match=r"Invalid output count 3: function has only 1 output\(s\)"):
        engine_of(square).open(Open("a", accepts=("text/plain",) * 3))


def test_R055_the_count_of_input_names_is_the_count_of_inputs():
    """Names, when given, are one an input; both numbers stand in the detail."""
    with pytest.raises(ProtocolViolation, match="'add' has no input 'c'; it has a, b; expected 2 inputNames, got 3"):
        engine_of(add).open(Open("a", accepts=("*/*",), input_names=("a", "b", "c")))


def test_R165_names_behind_the_labels_are_those_of_keyword_arguments():
    """Where the function takes any; one that has no other parameters has no labels but ``in``, which calls it."""

    def total(**numbers: int) -> int:
        return sum(numbers.values())

    def tagged(text: str, **tags: str) -> str:
        return text

    for one, names, own in (
        (tagged, ("in", "a"), ["text", "a"]),
        (total, ("a", "b"), ["a", "b"]),
        (total, ("a",), ["a"]),
        (total, ("in",), ["in"]),
        (total, (), ["in"]),
    ):
        (opened,) = [engine_of(one).open(Open("1", input_names=names))]
        assert [each.name for each in opened.function.spec.inputs] == own
        assert [each.is_option for each in opened.function.spec.inputs] == [each in "ab" for each in own]


def test_R054_no_names_mean_the_functions_own_arity():
    """A client that sends no names is served."""
    assert len(engine_of(add).open(Open("a", accepts=("*/*",))).inputs) == 2


@pytest.mark.parametrize(("names", "inputs"), [((), 1), (("a", "b", "c"), 3)])
def test_R056_an_open_arity_is_that_of_the_names_else_one(names, inputs):
    """Variadic inputs are as many as inputNames says."""
    assert len(engine_of(many).open(Open("a", accepts=("*/*",), input_names=names)).inputs) == inputs


def test_R039_an_open_output_arity_is_that_of_the_start_frame():
    """Tagged outputs are as many as the caller expects."""
    assert len(engine_of(tagged).open(Open("a", accepts=("*/*",) * 3)).outputs) == 3


def test_R039_an_open_output_arity_without_accepts_is_one_output_of_any_type():
    """Who says nothing of outputs gets the first one, in the media type of its choice: any."""
    invocation = engine_of(tagged).open(Open("a"))
    assert [output.name for output in invocation.outputs] == ["out"]
    assert invocation.context.accepts == ("*/*",)
    assert invocation.encode(0, Output(0, {"a": 1}))[1].media_type == "application/json"
    assert invocation.outputs[0].encode(b"x").media_type == "application/octet-stream"


def test_R058_a_sink_has_no_outputs():
    """Zero outputs are negotiated as such."""
    assert engine_of(sink).open(Open("a", accepts=())).outputs == []


def test_R100_an_unacceptable_second_output_is_named():
    """The detail says which output it is."""
    with pytest.raises(NotAcceptable, match="output #1 'y'"):
        engine_of(tagged).open(Open("a", accepts=("application/json", "image/png"), output_names=("x", "y")))


def test_R132_more_invocations_than_allowed_fail_at_once():
    """The limit counts what runs, and a closed invocation makes room."""
    engine = engine_of(square, max_invocations=1)
    first = engine.open(Open("a"))
    with pytest.raises(Overloaded, match="no more are allowed"):
        engine.open(Open("a"))
    first.finish(None)
    engine.close(first)
    engine.open(Open("a"))


def test_R132_how_long_it_has_been_full_counts_from_the_first_refusal():
    """Of the ones since an invocation last ended."""
    engine = Engine(Catalog([prepare_function(square).function]), builtin(entry_points=False), max_invocations=1)
    for _ in range(2):
        invocation = engine.open(Open("a"))
        assert engine.full_since == 0
        with pytest.raises(Overloaded):
            engine.open(Open("b"))
        first = engine.full_since
        assert first > 0
        with pytest.raises(Overloaded):
            engine.open(Open("c"))
        assert engine.full_since == first
        invocation.finish(None)
        engine.close(invocation)


def test_a_draining_engine_takes_nothing_new():
    """New invocations are refused as shutting down; running ones are not touched."""
    engine = engine_of(square)
    running = engine.open(Open("a"))
    engine.is_draining = True
    with pytest.raises(ShuttingDown):
        engine.open(Open("b"))
    assert not running.is_finished


def test_R012_two_invocations_share_nothing():
    """Names, accepts, metadata, queues and budgets are each invocation's own."""
    engine = engine_of(square)
    first = engine.open(Open("a", accepts=("text/plain",), input_names=("p",), metadata={"k": "1"}))
    second = engine.open(Open("a", accepts=("application/json",), input_names=("q",), metadata={"k": "2"}))
    first.feed(Feed("a", 0, Message(b"1", media_type="text/plain")))
    assert second.budget.frames == 0
    assert not second.inputs[0].queue
    assert (first.context.metadata["K"], second.context.metadata["K"]) == ("1", "2")
    assert (first.context.input_names, second.context.input_names) == (("p",), ("q",))
    assert first.outputs[0].encode(4).media_type == "text/plain"
    assert second.outputs[0].encode(4).media_type == "application/json"
    assert first.id != second.id


def test_R011_nothing_of_an_ended_invocation_is_kept():
    """Only numbers remain, and closing twice counts once."""
    engine = engine_of(square)
    for error in (None, LimitExceeded("x")):
        invocation = engine.open(Open("a"))
        invocation.finish(error)
        engine.close(invocation)
        engine.close(invocation)
    assert not engine.running
    assert engine.counters.finished == {Status.OK: 1, Status.RESOURCE_EXHAUSTED: 1}


def test_media_types_that_a_function_declares_are_raw_bytes_for_it_alone():
    """A function may speak image/png without a codec; another function of the process does not."""
    engine = engine_of(paint, square)
    opened = engine.open(Open("a", "paint", ("image/*",)))
    opened.feed(Feed("a", 0, Message(b"\x89", media_type="image/png")))
    assert opened.outputs[0].encode(b"\x89").media_type == "image/png"
    with pytest.raises(NotAcceptable):
        engine.open(Open("b", "square", ("image/png",)))
    other = engine.open(Open("c", "square"))
    with pytest.raises(UnsupportedMediaType):
        other.feed(Feed("c", 0, Message(b"\x89", media_type="image/png")))


def test_observers_hear_of_each_ending_once():
    """on_close is told the invocation with its error."""
    engine = engine_of(square)
    heard = []
    engine.on_close.append(heard.append)
    invocation = engine.open(Open("a"))
    invocation.finish(None)
    engine.close(invocation)
    engine.close(invocation)
    assert heard == [invocation]


def test_observers_of_a_protocol_hear_of_its_endings_only():
    """on_close_of is told nothing of an invocation that another protocol has opened."""
    engine = engine_of(square)
    heard = []
    engine.on_close_of["bridge"] = (heard.append,)
    other, own = (engine.open(Open(protocol, protocol=protocol)) for protocol in ("riff", "bridge"))
    for one in (other, own):
        one.finish(None)
        engine.close(one)
    assert heard == [own]


def fill(text: str, count: int = 2) -> str:
    return text * count


def test_E075_a_session_may_bind_inputs_by_name():
    """Those that it names are the inputs, in its order; wrong names are a violation."""
    engine = Engine(Catalog([prepare_function(fill).function]), builtin(entry_points=False))
    invocation = engine.open(Open("a", bound=("count", "text")))
    assert [stream.spec.name for stream in invocation.inputs] == ["count", "text"]
    assert [stream.spec.name for stream in engine.open(Open("b", input_names=("in",))).inputs] == ["text"]
    with pytest.raises(ProtocolViolation, match="'fill' needs its input 'text'"):
        engine.open(Open("c", bound=()))
    assert engine.counters.refused == 1


@function(outputs=("a", "b"), output_types={"b": "text/html"})
def two(xs: Iterator[str]) -> tuple[Iterator[Any], Iterator[Any]]:
    return xs, xs


def test_E104_a_media_type_goes_by_value_where_nobody_says_it():
    """Text is text and bytes are bytes, unless the function or the peer says otherwise."""
    engine = Engine(Catalog([prepare_function(two).function]), builtin(entry_points=False))

    def types(accept, *, terms=Terms.LOOSE):
        invocation = engine.open(Open("a", accepts=(accept, accept), terms=terms))
        values = ("x", b"x", bytearray(b"x"), StrEnum("E", ["X"]).X, 5, Message("x"))
        return [invocation.encode(0, value)[1].media_type for value in values], invocation

    by_value = ["text/plain", *["application/octet-stream"] * 2, "text/plain", "application/json", "text/plain"]
    assert types("")[0] == types("*/*")[0] == by_value
    assert types("application/json;q=0.1, */*")[0] != by_value
    invocation = types("*/*")[1]
    assert invocation.encode(1, "x")[1].media_type == "text/html"
    assert invocation.encode(0, Message("x", media_type="application/json"))[1].media_type == "application/json"
    json_first = types("*/*", terms=Terms.STRICT)[1].encode(0, "x")[1].media_type
    assert json_first == "text/html"  # a declared one comes first, as it always did


def test_an_invocation_may_have_limits_and_configs_of_its_own():
    """The session that opens it says so."""
    engine = Engine(Catalog([prepare_function(fill).function]), builtin(entry_points=False))
    invocation = engine.open(Open("a", configs=({"k": 1},)), limits=Limits(high_frames=1))
    assert invocation.budget.limits.high_frames == 1
    assert invocation.context.configs == ({"k": 1},)
    assert engine.open(Open("b")).budget.limits is engine.limits


class Pair(NamedTuple):
    """Two arrays in one value."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Alone(TypedDict):
    """One array by name."""

    low: NDArray[np.int64]


def pair(x: int) -> Pair:
    raise NotImplementedError


def alone(x: int) -> Alone:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("fn", "accepts", "names", "outputs"),
    [
        (pair, None, (), ["out"]),
        (pair, ("*/*",), (), ["out"]),
        (pair, ("*/*", "*/*"), (), ["low", "high"]),
        (pair, ("*/*", "*/*"), ("a", "b"), ["a", "b"]),
        (alone, ("*/*",), (), ["out"]),
        (alone, ("*/*",), ("low",), ["low"]),
        (alone, ("*/*",), ("high",), ["high"]),
    ],
)
def test_R052_G066_parts_are_outputs_for_who_asks_for_them(fn: Any, accepts: Any, names: Any, outputs: Any):
    """By their number, or one by its name; others get the whole."""
    engine = engine_of(fn)
    invocation = engine.open(Open("a", accepts=accepts, output_names=names))
    assert [one.name for one in invocation.outputs] == outputs
    assert bool(invocation.function.spec.call.parts) is (outputs != ["out"] and names != ("high",))
    engine.close(invocation)


def test_R052_another_number_than_that_of_the_parts_is_refused():
    """As ever."""
    with pytest.raises(ProtocolViolation, match="Invalid output count 3"):
        engine_of(pair).open(Open("a", accepts=("*/*",) * 3))


def test_R132_a_call_whose_large_response_is_not_taken_counts_as_one_that_runs() -> None:
    """Else a client that reads nothing begins as many as it likes, and each leaves its response in memory."""
    engine = engine_of(square, max_invocations=1)
    unread = Unread(engine.memory)
    unread.add(1_000_000, None)
    unread.part()
    with pytest.raises(Overloaded, match="1 invocation is running"):
        engine.open(Open("a"))
    unread.take()
    engine.close(engine.open(Open("a")))
