"""Requests of GraphPipe: names, types and shapes of inputs, what functions give, and how they end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from invoker import function
from invoker.codecs.tensor import TENSOR
from invoker.core.steps import Emitted, Finished, OutputEnded
from invoker.errors import (
    CallError,
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    FunctionError,
    InternalError,
    LimitExceeded,
    NotAcceptable,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.errors.wording import Place
from invoker.message import EMPTY, Headers, Message, Output
from invoker.protocols import graphpipe
from invoker.protocols.graphpipe.answer import Answer
from invoker.protocols.graphpipe.prepare import joint, prepare
from invoker.protocols.graphpipe.session import GraphPipeSession, Row
from invoker.tensors import LIMIT_BYTES, GraphPipeError, read_infer_response, read_metadata_response, write_tensor
from invoker.tensors.arrays import to_tensor
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace, play
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, model_of
from tests.tensors.samples import Parts, crafted, fixture

Rows = Annotated[NDArray[np.float32], ("batch", 3)]
Point = Annotated[NDArray[np.float32], (2,)]


class Both(NamedTuple):
    """Two outputs."""

    low: Iterator[NDArray[Any]]
    high: Iterator[NDArray[Any]]


def echo(x: NDArray[Any]) -> NDArray[Any]: ...
def two(left: Rows, right: NDArray[np.int64], scale: float = 1.0) -> Rows: ...
def parted(x: NDArray[Any], n: int = 2) -> Both: ...
def plain(a: int, name: str, flag: bool = False) -> float: ...
def blob(data: bytes, parts: list[str]) -> bytes: ...
def named(x: NDArray[Any]) -> dict[str, NDArray[Any]]: ...
def undeclared(x): ...
def many(*xs: NDArray[Any]) -> NDArray[Any]: ...
def keyed(**xs: NDArray[Any]) -> NDArray[Any]: ...
def sink(x: int) -> None: ...
def source() -> int: ...
def stream(xs: Iterator[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]: ...
def tag(xs: Iterator[NDArray[Any]]) -> Iterator[Output]: ...
@function(options=[graphpipe.Rows()])
def norms(points: Iterator[Point], scale: Iterator[int]) -> Iterator[float]: ...
@function(batch_max=4)
def batched(x: NDArray[np.float32]) -> NDArray[np.float32]: ...
@function(outputs=("low", "high"))
def bounds(xs: list[float]) -> tuple[float, float]: ...


_ROWS, _ONES = np.float32([[1, 2, 3]]), np.int64([1])

_REQUESTS: list[tuple[Any, bytes]] = [
    *((echo, fixture(name)) for name in ("infer_request", "py_float32", "go_float32", "metadata_request",
        "py_metadata_request")),
    (echo, ask([1], config=b"\0x")), (echo, ask(["a", "bc"])), (echo, ask(3)), (echo, ask([[True, False]])),
    (echo, ask([])),
    (echo, b""), (echo, b"\xff" * 100), (echo, ask([1], [2], input_names=("a", "b"))), (echo, ask()),
    (echo, ask([1], output_names=("wrong",))), (echo, crafted(Parts(13))), (echo, crafted(Parts(10, (2,), bytes(7)))),
    (echo, ask([1], input_names=("X",))), (echo, ask([1], input_names=("input0",))), (echo, METADATA_REQUEST),
    (two, ask(_ROWS, _ONES)), (two, ask(_ROWS, _ONES, 2.0)), (two, ask(_ONES, _ROWS, input_names=("right", "left"))),
    (two, ask(_ROWS, _ONES, input_names=("", "right"))), (two, ask(_ROWS, _ONES, input_names=("left", "rihgt"))),
    (two, ask(_ROWS, _ROWS, input_names=("left", "input0"))), (two, ask(_ROWS)),
    (two, ask(_ONES, input_names=("right",))),
    (two, ask(_ROWS, _ONES, 1.0, 1.0)), (two, ask(_ROWS.astype("f8"), _ONES)),
    (two, ask(np.float32([[1, 2]]), _ONES)),
    (two, ask(np.float32([1, 2, 3]), _ONES)), (two, ask(_ROWS, np.float32([1]))),
    (two, ask(np.array([["a", "b", "c"]]), _ONES)),
    (two, ask(1, 2, input_names=("ä" * 10_000, "z"))), (two, ask(np.zeros((0, 3), "f4"), _ONES)),
    (parted, ask(3, [1.5], input_names=("n", "x"))), (parted, ask([1], output_names=("high",))), (parted, ask([1.5])),
    (parted, ask([1], output_names=("high", "low", "high"))), (parted, ask([1], output_names=("output1",))),
    (plain, ask(1, "ann")), (plain, ask(1, "ann", True)), (plain, ask(1.5, "ann")), (plain, ask([1], "ann")),
    (plain, ask(1, [["ann"]])), (plain, ask(1, 2)), (blob, ask("ab", ["x", "y"])), (blob, ask(b"\xff", [b"\xff"])),
    (blob, ask(np.uint8([1, 2]), [])), (named, ask([1])), (undeclared, ask([1])),
    (undeclared, ask([1], output_names=("a", "b"))),
    (many, ask([1], [2])), (many, ask([1], [2], input_names=("a", "b"))), (many, ask()),
    (keyed, ask([1], [2], input_names=("a", "b"))),
    (keyed, ask([1])), (keyed, ask([1], [2], input_names=("a", "a"))), (sink, ask(1)), (source, ask()),
    (source, ask(1)),
    (stream, ask(np.float32([1, 2]))), (tag, ask([1], output_names=("a",))), (tag, ask([1])),
    (bounds, ask([1.0, 2.0])),
    (batched, ask(np.ones((1, 2), "f4"))), (batched, ask(np.ones((5, 2), "f4"))), (batched, ask(np.float32(1))),
    (norms, ask(np.float32([[3, 4], [6, 8]]), [1, 2])), (norms, ask(np.zeros((2, 2), "f4"), [1])),
    (norms, ask(np.zeros((0, 2), "f4"), np.zeros(0, int))),
    (norms, ask(np.zeros((2, 2), "f4"), 1)),
]  # fmt: skip


def _out(value: Any, index: int = 0) -> Emitted:
    return _raw(bytes(write_tensor(to_tensor(value))), TENSOR, index)


def _raw(payload: bytes, media_type: str, index: int = 0) -> Emitted:
    return Emitted("infer", index, Message(payload, EMPTY, media_type))


_COURSES: dict[str, list[Any]] = {
    "nothing": [],
    "a value": [_out(np.float32([[1, 2, 3]]))],
    "two values": [_out([1]), _out([2])],
    "both outputs": [_out([1], 0), OutputEnded("infer", 0), _out([2], 1)],
    "the second output": [_out([2], 1)],
    "json": [_raw(b"[[1.5, 2], [3, 4]]", "application/json")],
    "ragged json": [_raw(b"[[1], [2, 3]]", "application/json")],
    "mixed json": [_raw(b'[1, "a"]', "application/json")],
    "broken json": [_raw(b"[", "application/json")],
    "large json": [_raw(b"[9223372036854775808]", "application/json")],
    "bytes": [_raw(b"\x00\xff", "application/octet-stream")],
    "text": [_raw(b"abc", "text/plain")],
    "broken tensor": [_raw(b"\xff" * 9, TENSOR)],
    "msgpack": [_raw(b"\x92\x01\x02", "application/msgpack")],
    "another type": [_raw(b"x", "image/png")],
}

_ERRORS = [
    FunctionError("ValueError: x"), CallError("x"), DeadlineExceeded("x"), Overloaded("x"), LimitExceeded("x"),
    ShuttingDown("x"),
    Cancelled("x"), FunctionError("é" * 5000), EncodeError("no codec takes it"), InternalError("x"),
    ProtocolViolation("x"),
    UnsupportedMediaType("a/b"), NotAcceptable("a/b"), StatusError(Status.NOT_FOUND, "x"), DecodeError(" is bad"),
    DecodeError(" is bad", place=Place("input", 0)), EncodeError(" is bad", place=Place("output", 0)),
    StatusError(Status.INVALID_ARGUMENT, "x"), StatusError(Status.PERMISSION_DENIED, "x"),
]  # fmt: skip


_AFTER = (HALF_CLOSE, _out(1), Finished("infer"), HALF_CLOSE, b"again")


def scenarios() -> dict[str, Scenario]:
    """By request, by what functions give, by error; and rows."""
    made: dict[str, Scenario] = {}
    for turn, (one, request) in enumerate(_REQUESTS):
        made[f"request {turn} of {one.__name__}"] = _played(one, [request, *_AFTER[: 4 if turn % 12 else 5]])
    wanted: dict[Any, bytes] = {
        echo: ask([1]), two: ask(_ROWS, _ONES), parted: ask([1]), undeclared: ask([1], output_names=("a", "b")),
        plain: ask(1, "a"),
    }  # fmt: skip
    for course, events in _COURSES.items():
        for one, request in wanted.items():
            if one in (echo, two) or course in ("nothing", "a value", "both outputs", "json", "the second output"):
                made[f"{one.__name__} gives {course}"] = _played(one, [request, *events, Finished("infer")])
    for turn, error in enumerate(_ERRORS):
        for one in (echo, named, plain):
            acts = [wanted.get(one, ask([1])), _out(1), Finished("infer", error), Finished("infer")]
            made[f"{one.__name__} ends with {turn} {error.status.name}"] = _played(one, acts)
    return (
        made
        | _rows()
        | {"nothing comes": _played(echo, [Finished("infer"), HALF_CLOSE]), "known requests": _again, "joined": _joined}
    )


def _rows() -> dict[str, Scenario]:
    request = ask(np.float32([[3, 4], [6, 8]]), [1, 2])
    courses: dict[str, Sequence[Any]] = {
        "as many": [Row(0), _out(5.0), Row(1), HALF_CLOSE, _out(20.0), Finished("infer"), Row(1)],
        "fewer": [Row(0), _out(5.0), HALF_CLOSE, Finished("infer")],
        "more": [Row(0), _out(5.0), _out(5.0), _out(5.0)],
        "of another shape": [Row(0), _out([5.0, 1.0]), _out([5.0]), Finished("infer")],
        "before the request": [],
    }
    made = {f"rows: {name}": _played(norms, [request, *acts]) for name, acts in courses.items()}
    return made | {"rows: too early": _played(norms, [Row(0), HALF_CLOSE])}


def _played(one: Any, acts: Sequence[Any], limit_bytes: int = LIMIT_BYTES) -> Scenario:
    def scenario(trace: Trace) -> None:
        session = GraphPipeSession(model_of(one), limit_bytes=limit_bytes, metadata=Headers({"X-Request-Id": "7"}))
        play(trace.session(session, reads=_request, writes=_response), acts)
        trace.write(f"state {session.state.name}")

    return scenario


def _again(trace: Trace) -> None:
    """The second request of a kind follows a plan; others that are nearly alike do not."""
    model = model_of(two)
    kinds = [
        ask(_ROWS, _ONES),
        ask(_ROWS + 1, _ONES + 1),
        ask(np.vstack([_ROWS, _ROWS]), _ONES),
        ask(_ROWS, np.int64([1, 2])),
        ask(_ROWS),
    ]
    for limit_bytes in (LIMIT_BYTES, 20, 19):
        for request in [*kinds, *kinds]:
            session = GraphPipeSession(model, limit_bytes=limit_bytes)
            play(trace.session(session, reads=_request, writes=_response), [request, _out(_ROWS), Finished("infer")])


def _joined(trace: Trace) -> None:
    """Requests that are alike become one."""
    model = model_of(batched)
    several = [prepare(model, ask(np.full((count, 2), count, np.float32))) for count in (1, 2, 1)]
    for limit_bytes in (LIMIT_BYTES, 32, 31):
        try:
            trace.write(f"joint {trace.shown(joint(model, several, limit_bytes=limit_bytes).steps)}")
        except GraphPipeError as error:
            trace.write(f"joint {trace.shown(error)}")


def _request(frame: Any) -> str:
    return f"sha256 {hashlib.sha256(frame).hexdigest()[:12]}"


def _response(frame: Any) -> Any:
    """As a client reads it, with the size and a hash of its bytes."""
    written = bytes(frame.response() if isinstance(frame, Answer) else frame)
    seen = f"{len(written)} bytes, sha256 {hashlib.sha256(written).hexdigest()[:12]}"
    try:
        return seen, read_infer_response(written)
    except GraphPipeError:
        return seen, read_metadata_response(written)
