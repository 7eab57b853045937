"""`invoker.protocols.graphpipe.session`: one request, its steps, its response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from invoker.core.steps import ALL, Close, Emitted, EndInput, Feed, Finished, Open, OutputEnded, Send
from invoker.errors import (
    CallError,
    Cancelled,
    DeadlineExceeded,
    EncodeError,
    FunctionError,
    InvocationError,
    LimitExceeded,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
)
from invoker.message import Headers, Message
from invoker.protocols.graphpipe.checked import CheckedRequest
from invoker.protocols.graphpipe.config import RequestConfig
from invoker.protocols.graphpipe.prepare import prepare
from invoker.protocols.graphpipe.session import GraphPipeSession, State
from invoker.tensors import MAX_MESSAGE_BYTES, Code, read_metadata_response, write_infer_response
from invoker.tensors.arrays import to_tensor
from tests.protocols.graphpipe.asking import METADATA_REQUEST, Asked, ask, code_of, model_of, received, values
from tests.tensors.samples import Parts, Raw, crafted, fixture


class Both(NamedTuple):
    low: Iterator[NDArray[Any]]
    high: Iterator[NDArray[Any]]


def echo(x: NDArray[Any]) -> NDArray[Any]:
    raise NotImplementedError


def parted(x: NDArray[Any], n: int = 2) -> Both:
    raise NotImplementedError


ECHO = model_of(echo)
PARTED = model_of(parted)


@pytest.mark.parametrize("name", ["infer_request", "py_float32", "go_float32"])
def test_G078_GT02_one_tensor_in_one_out(name: str) -> None:
    """The bytes of the references and of the clients; no names are needed, and the answer is exactly the tensor."""
    asked = Asked(ECHO, fixture(name))
    opened, fed, ended = asked.steps
    assert opened == Open("infer", "echo", ("application/vnd.graphpipe.tensor",), bound=("x",), protocol="graphpipe")
    assert isinstance(fed, Feed)
    assert fed.message.media_type == "application/vnd.graphpipe.tensor;type=float32;shape=1x2"
    assert bytes(fed.message.payload) == np.float32([[1, 2]]).tobytes()
    assert ended == EndInput("infer", ALL)
    assert asked.emit(0, np.float32([[1, 2]])) == ()
    response = asked.finish()
    assert values(response) == [[[1.0, 2.0]]]
    assert bytes(response) == bytes(write_infer_response([to_tensor(np.float32([[1, 2]]))]))


@pytest.mark.parametrize("name", ["metadata_request", "py_metadata_request"])
def test_G092_GT01_metadata_without_an_invocation(name: str) -> None:
    """Nothing is opened."""
    sent, closed = Asked(ECHO, fixture(name)).steps
    assert isinstance(sent, Send)
    assert closed == Close()
    assert read_metadata_response(bytes(sent.frame)) == ECHO.metadata


def test_G070_inputs_are_bound_in_declared_order() -> None:
    """Only those that are given; G-056 leaves the rest to their defaults."""
    asked = Asked(PARTED, ask(3, [1.5], input_names=("n", "x")))
    assert asked.opened.bound == ("x", "n")
    assert [(step.index, step.message.media_type) for step in asked.steps if isinstance(step, Feed)] == [
        (0, "application/vnd.graphpipe.tensor;type=float64;shape=1"),
        (1, "application/msgpack"),
    ]
    assert Asked(PARTED, ask([1.5])).opened.bound == ("x",)


def test_G057_G060_only_what_is_wanted_is_encoded() -> None:
    """The rest is drained; the order is the caller's."""
    asked = Asked(PARTED, ask([1], output_names=("high",)))
    assert asked.opened.unwanted == (0,)
    asked.emit(0, 9)
    asked.emit(1, 5)
    assert values(asked.finish()) == [5]
    both = Asked(PARTED, ask([1], output_names=("high", "low", "high")))
    assert both.opened.unwanted == ()
    both.emit(0, 1)
    both.emit(1, 2)
    assert values(both.finish()) == [2, 1, 2]


def test_G031_config_reaches_the_context() -> None:
    """As one config; none is none."""
    (config,) = Asked(ECHO, ask([1], config=b"\0x")).opened.configs
    assert isinstance(config, RequestConfig)
    assert config.value == b"\0x"
    assert Asked(ECHO, ask([1])).opened.configs == ()


def test_G108_metadata_of_the_conversation_is_handed_on() -> None:
    """As the transport gives it."""
    opened = prepare(ECHO, ask([1]), metadata=Headers({"X-Request-Id": "7"})).steps[0]
    assert isinstance(opened, Open)
    assert opened.metadata["x-request-id"] == "7"


@pytest.mark.parametrize(
    ("buffer", "code"),
    [
        (b"", Code.MALFORMED),
        (b"\xff" * 100, Code.MALFORMED),
        (ask([1], [2], input_names=("a", "b")), Code.UNKNOWN_INPUT),
        (ask(), Code.MISSING_INPUT),
        (ask([1], output_names=("wrong",)), Code.UNKNOWN_OUTPUT),
        (crafted(Parts(13)), Code.UNSUPPORTED_TYPE),
        (crafted(Parts(10, (2,), bytes(7))), Code.DATA_LENGTH),
    ],
)
def test_G082_a_refused_request_is_answered_with_its_error(buffer: bytes, code: Code) -> None:
    """Without the function; the conversation ends with the same error."""
    asked = Asked(ECHO, buffer)
    assert code_of(asked.refusal) is code
    closed = asked.steps[-1]
    assert isinstance(closed, Close)
    assert closed.error is asked.refusal.error
    assert asked.session.state is State.CLOSED


def two(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    raise NotImplementedError


def test_G025_GT63_tensors_that_share_their_data_count_each_time() -> None:
    """Both inputs get it; E13, before anything is fed, where it is too much together."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    infer = raw.table([None, None, bytes(4)])
    raw.link(root + 8, infer)
    vector = raw.open(2)
    raw.link(infer + 4, vector)
    table = raw.table([b"\x0b\0\0\0", bytes(4), bytes(4)])
    raw.link(table + 8, raw.shape(1000))
    raw.link(table + 12, raw.octets(bytes(8000)))
    raw.link(vector + 4, table)
    raw.link(vector + 8, table)
    buffer = raw.root(root)
    first, second = (one.message for one in prepare(model_of(two), buffer).steps if isinstance(one, Feed))
    assert first == second
    refused = prepare(model_of(two), buffer, limit_bytes=10_000).steps[0]
    assert isinstance(refused, Send)
    assert code_of(refused.frame) is Code.TOO_LARGE


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FunctionError("ValueError: x"), Code.FUNCTION_FAILED),
        (CallError("x"), Code.FUNCTION_FAILED),
        (DeadlineExceeded("x"), Code.TIMEOUT),
        (Overloaded("x"), Code.OVERLOADED),
        (LimitExceeded("x"), Code.TOO_LARGE),
        (ShuttingDown("x"), Code.NOT_READY),
        (Cancelled("x"), Code.CANCELLED),
    ],
)
def test_G065_G075_every_ending_is_a_response(error: InvocationError, code: Code) -> None:
    """What was given before does not count (G-064)."""
    asked = Asked(ECHO, ask([1]))
    asked.emit(0, 1)
    assert code_of(asked.finish(error)) is code


def test_G083_long_texts_are_cut() -> None:
    """At 4096 bytes, between characters."""
    (error,) = received(Asked(ECHO, ask([1])).finish(FunctionError("é" * 5000))).errors
    assert 4000 < len(error.message.encode()) <= 4096


def test_G071_a_second_value_cancels() -> None:
    """The function need not run any further."""
    asked = Asked(ECHO, ask([1]))
    asked.emit(0, 1)
    assert code_of(asked.cancelled(asked.emit(0, 2))) is Code.BAD_OUTPUT


def test_G071_no_value_is_E18() -> None:
    """A tensor was promised."""
    assert code_of(Asked(ECHO, ask([1])).finish()) is Code.BAD_OUTPUT


def test_endless_output_is_bounded() -> None:
    """However often one may give."""
    prepared = prepare(ECHO, ask([1]))
    few = CheckedRequest(prepared.steps, prepared.wanted, prepared.ports, {}, most_bytes=100)
    session = GraphPipeSession(ECHO)
    session.receive(few)
    (cancel,) = session.deliver(Emitted("infer", 0, Message(bytes(101))))
    assert "exceed the limit of 100 bytes" in str(cancel.error)  # type: ignore[union-attr]


def test_a_conversation_is_one_request() -> None:
    """Nothing before it, nothing after it."""
    session = GraphPipeSession(ECHO)
    assert session.deliver(Finished("infer")) == ()
    with pytest.raises(ProtocolViolation, match="without a request"):
        session.half_close()
    session.receive(ask([1]))
    assert session.half_close() == ()
    assert session.deliver(OutputEnded("infer", 0)) == ()
    with pytest.raises(ProtocolViolation, match="while the function runs"):
        session.receive(ask([1]))
    session.deliver(Finished("infer"))
    assert session.deliver(Finished("infer")) == ()


def test_a_sink_is_answered_with_no_tensors() -> None:
    """And a function without inputs is called without any."""

    def sink() -> None:
        raise NotImplementedError

    asked = Asked(model_of(sink), ask())
    assert asked.opened.bound == ()
    asked.session.deliver(OutputEnded("infer", 0))


def test_G105_G106_what_is_logged_of_a_request() -> None:
    """Names, types, shapes; no values, no config."""
    assert prepare(PARTED, ask([[1, 2]], 3, config=b"secret")).about == "infer x:Int64[1, 2] n:Int64[]"
    assert prepare(ECHO, METADATA_REQUEST).about == "metadata"


@given(st.binary(max_size=200))
def test_G022_any_bytes_are_answered(buffer: bytes) -> None:
    """No exception leaves a session."""
    assert GraphPipeSession(ECHO).receive(buffer)


@given(st.integers(0, 111), st.integers(0, 255))
def test_G101_flipped_bytes_are_answered(at: int, byte: int) -> None:
    """With steps, whatever they are."""
    buffer = bytearray(fixture("infer_request"))
    buffer[at] = byte
    steps = GraphPipeSession(ECHO).receive(buffer)
    assert isinstance(steps[-1], Close | EndInput)


def test_G084_G083_several_errors_are_each_short() -> None:
    """However long names are; the first is the response's own."""
    asked = Asked(model_of(two), ask(1, 2, input_names=("ä" * 10_000, "z")))
    errors = received(asked.refusal).errors
    assert [one.code for one in errors] == [Code.UNKNOWN_INPUT] * 2
    assert all(len(one.message.encode()) <= MAX_MESSAGE_BYTES for one in errors)
    assert asked.refusal.error is not None
    assert asked.refusal.error.message == errors[0].message
    assert asked.steps[-1] == Close(asked.refusal.error)


def test_G066_a_dict_that_no_tensor_can_be_is_hinted_at() -> None:
    """It may be meant as outputs; another failure is not."""

    def named(x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        raise NotImplementedError

    for function, hinted in ((named, True), (echo, False)):
        asked = Asked(model_of(function), ask(1))
        text = received(asked.finish(EncodeError("no codec takes it"))).errors[0].message
        assert ("; if its parts are outputs, name them with @function(outputs=(...))" in text) is hinted
    failed = Asked(model_of(named), ask(1))
    assert "outputs" not in received(failed.finish(FunctionError("no"))).errors[0].message
