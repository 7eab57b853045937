"""Calls of riff's streaming protocol: each start with each course, and each course with each ending."""

from __future__ import annotations

from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.steps import Elapsed, Emitted, Finished, OutputEnded
from invoker.errors import (
    CallError,
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    FunctionError,
    InternalError,
    InvocationError,
    LimitExceeded,
    NotAcceptable,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    UnsupportedMediaType,
)
from invoker.message import EMPTY, Message
from invoker.protocols.riff.session import RiffSession
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace, play


def _start(types: tuple[str, ...] = ("application/json",), ins: Any = (), outs: Any = ()) -> bytes:
    frame = pb.StartFrame(expectedContentTypes=types, inputNames=ins, outputNames=outs)
    return pb.InputSignal(start=frame).SerializeToString()


def _data(payload: bytes = b"1", index: int = 0, media_type: str = "application/json", **headers: str) -> bytes:
    frame = pb.InputFrame(payload=payload, contentType=media_type, argIndex=index, headers=headers)
    return pb.InputSignal(data=frame).SerializeToString()


def _out(payload: bytes, index: int = 0, media_type: str = "text/plain", headers: Any = EMPTY) -> Emitted:
    return Emitted("riff", index, Message(payload, headers, media_type))


def _over(error: InvocationError | None = None) -> Finished:
    return Finished("riff", error)


_STARTS = {
    "one output": [_start()],
    "two outputs": [_start(("text/plain, */*", "image/png"), ("a",), ("x", "y"))],
    "no output": [_start(())],
    "only inputs have names": [_start(("*/*",), ("a", "b"))],
    "names disagree with types": [_start(("text/plain",), (), ("a", "b"))],
    "more types than names": [_start(("text/plain", "a/b"), (), ("a",))],
    "no start": [],
    "a signal without a case": [b""],
    "no signal": [b"\xff"],
    "two starts": [_start(), _start(("text/csv",), ("in2",), ("out2",))],
    "empty start": [pb.InputSignal(start=pb.StartFrame()).SerializeToString()],
}

_COURSES = {
    "nothing": [],
    "half-close": [HALF_CLOSE],
    "half-closed twice": [_data(), HALF_CLOSE, HALF_CLOSE],
    "data": [_data(), _data(b"x", 3, "text/plain", k="v"), _data(b"", 0, ""), HALF_CLOSE],
    "data behind the half-close": [HALF_CLOSE, _data()],
    "a start behind data": [_data(), _start()],
    "garbage behind data": [_data(), b"\xff\xff"],
    "no case behind data": [_data(), b"", HALF_CLOSE],
    "outputs between inputs": [
        _data(b"a"), _out(b"A"), OutputEnded("riff", 0), _data(b"b"), _out(b"B", 1), _out(b"", 0, ""), HALF_CLOSE,
    ],
    "sizes of outputs": [
        *(_out(b"x" * size, index) for size in (111, 112, 113, 114, 127, 128, 300, 20_000) for index in (0, 1, 200)),
        _out(b"h", 2, "", {"a": "b"}), _out(b"x" * 112, 0, ""), _out(b"", 0), _out(b"", 7, "a/b"), HALF_CLOSE,
    ],
    "time": [Elapsed()],
}  # fmt: skip

_ENDINGS = {
    "ok": [_over()],
    "function error": [_over(FunctionError("boom"))],
    "violation": [_over(ProtocolViolation("no"))],
    "not acceptable": [_over(NotAcceptable("image/png"))],
    "overloaded": [_over(Overloaded("full"))],
    "drains": [_over(ShuttingDown("bye"))],
    "cancelled": [_over(Cancelled("gone"))],
    "late": [_over(DeadlineExceeded("late"))],
    "media type": [_over(UnsupportedMediaType("a/b"))],
    "decode": [_over(DecodeError("{"))],
    "call": [_over(CallError("args"))],
    "too much": [_over(LimitExceeded("long"))],
    "internal": [_over(InternalError("secret"))],
}

_AFTER = (_data(), _start(), b"\xff", b"", Elapsed(), _out(b"late"), HALF_CLOSE, _over())
"""What comes behind an ending, in turn; it shows whether the session is closed, or about to refuse its start."""


def scenarios() -> dict[str, Scenario]:
    """By start, course and ending."""
    made: dict[str, Scenario] = {}
    for start, first in _STARTS.items():
        for course, frames in _COURSES.items():
            if start == "one output" or course in ("nothing", "half-close", "data"):
                made[f"{start}; {course}"] = _played(first, frames, [_over()], _AFTER)
    turn = 0
    for course in ("nothing", "half-close", "data"):
        for ending, last in _ENDINGS.items():
            after = _AFTER[turn % len(_AFTER) :] + _AFTER[: turn % len(_AFTER)]
            made[f"{course}; {ending}"] = _played(_STARTS["one output"], _COURSES[course], last, after)
            turn += 1
    return made


def _played(*parts: Any) -> Scenario:
    def scenario(trace: Trace) -> None:
        session = RiffSession({"trace": "t"}, function="square")
        recorded = trace.session(session, reads=pb.InputSignal.FromString, writes=pb.OutputSignal.FromString)
        play(recorded, [act for part in parts for act in part])
        trace.write(f"state {session.state.name}")

    return scenario
