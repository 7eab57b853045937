"""Any signature and any call: each value that is given reaches the function, or the call is refused (R-164)."""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.errors import InvocationError, ProtocolViolation
from invoker.execution.driver import Driver
from invoker.testing import Harness
from tests.execution.wires import Call, SweeperByHand

TEXT = "text/plain"
NAMES = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Shape:
    """A signature: which parameters have defaults, are keyword-only, and are streams."""

    required: int
    optional: int
    streams: tuple[bool, ...]
    by_keyword: int
    is_mapped: bool
    is_async: bool

    @property
    def source(self) -> str:
        kind = "AsyncIterator[str]" if self.is_async else "Iterator[str]"
        parts = []
        count = self.required + self.optional
        for index, name in enumerate(NAMES[:count]):
            is_stream = index < self.required and self.streams[index] and not self.is_mapped
            default = f" = '{name}?'" if index >= self.required else ""
            if index >= self.required and index == count - self.by_keyword:
                parts.append("*")
            parts.append(f"{name}: {kind if is_stream else 'str'}{default}")
        begin = "async def" if self.is_async else "def"
        names = ", ".join(NAMES[:count])
        if self.is_mapped:
            return f"{begin} fn({', '.join(parts)}) -> str:\n    return show([{names}])"
        lines = [f"{begin} fn({', '.join(parts)}) -> {kind}:", f"    values = [{names}]"]
        for index in range(count):
            if index < self.required and self.streams[index]:
                each = f"[one {'async ' if self.is_async else ''}for one in values[{index}]]"
                lines.append(f"    values[{index}] = '+'.join({each})")
        lines.append("    yield show(values)")
        return "\n".join(lines)


@functools.cache
def harness(shape: Shape) -> Harness:
    """The function of a signature, ready to run."""
    namespace: dict[str, Any] = {"Iterator": Iterator, "AsyncIterator": AsyncIterator, "show": "|".join}
    exec(shape.source, namespace)
    return Harness(namespace["fn"])


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    required = draw(st.integers(0, 2))
    optional = draw(st.integers(0 if required else 1, 2))  # a source ends before its input does
    return Shape(
        required,
        optional,
        tuple(draw(st.lists(st.booleans(), min_size=2, max_size=2))),
        draw(st.integers(0, optional)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@st.composite
def calls(draw: st.DrawFn) -> tuple[Shape, tuple[str, ...], list[tuple[int, str]]]:
    """A signature, names that may fit it, and frames: each with a text of its own."""
    shape = draw(shapes())
    labels = max(shape.required, 1)
    options = NAMES[labels : shape.required + shape.optional]
    names: tuple[str, ...] = ()
    if draw(st.booleans()):
        names = ("in",) * draw(st.sampled_from([labels, labels, labels, 1, 2]))
        names += tuple(draw(st.permutations(options))[: draw(st.integers(0, len(options)))])
    indexes = draw(st.lists(st.integers(0, 3), max_size=6))
    return shape, names, [(index, f"v{number}") for number, index in enumerate(indexes)]


def signal(**frame: Any) -> bytes:
    return pb.InputSignal(**frame).SerializeToString()


def directly(shape: Shape, frames: list[bytes]) -> tuple[list[str], InvocationError | None]:
    """What the thread of a call makes of it."""
    made = harness(shape)
    driver = Driver(Engine(Catalog([made.function]), made.registry, new_lock=threading.Lock))
    driver.sweeper = SweeperByHand()
    call = Call(driver)
    for one in frames:
        call.raw(one)
    error = call.half_close().end()
    driver.threads.close()
    return [payload.decode() for payload in call.payloads()], error


@settings(max_examples=150, deadline=None)
@given(calls())
def test_R164_what_is_given_is_used_or_refused(drawn):
    """Each text is in what the function gives, or the call has ended with an error that says why."""
    shape, names, frames = drawn
    start = pb.StartFrame(expectedContentTypes=[TEXT], inputNames=names, outputNames=["out"] if names else [])
    data = [pb.InputFrame(payload=text.encode(), contentType=TEXT, argIndex=index) for index, text in frames]
    signals = [signal(start=start), *(signal(data=one) for one in data)]
    result = harness(shape).frames(*signals)
    outcomes = [(result.values(), result.error)] + ([] if shape.is_async else [directly(shape, signals)])
    for values, error in outcomes:
        if error is not None:
            assert str(error).startswith(("Invoker: Protocol Violation: ", "Invoker: Bad Input Signal: "))
            continue
        seen = {part for value in values for each in value.split("|") for part in each.split("+")}
        lost = {text for _, text in frames if text not in seen}
        assert lost <= (unmet(shape, frames) if shape.is_mapped else set())


def unmet(shape: Shape, frames: list[tuple[int, str]]) -> set[str]:
    """What meets no call of a mapped function: its inputs are zipped, and end with the shortest."""
    columns = [[text for each, text in frames if each == index] for index in range(shape.required)]
    count = min(map(len, columns), default=1)
    rest = {text for column in columns for text in column[count:]}
    return rest if count else {text for _, text in frames}


def test_R164_defaults_hold_for_what_is_not_given():
    """In the function's own place for it."""
    shape = Shape(1, 2, (False, False), 1, is_mapped=True, is_async=False)
    start = pb.StartFrame(expectedContentTypes=[TEXT], inputNames=["in", "c"])
    frames = [pb.InputFrame(payload=text, contentType=TEXT, argIndex=index) for index, text in ((0, b"x"), (1, b"y"))]
    result = harness(shape).frames(signal(start=start), *(signal(data=one) for one in frames))
    assert result.values() == ["x|b?|y"]


@pytest.mark.parametrize("is_async", [False, True])
def test_R168_too_many_values_are_a_violation(is_async):
    """On either runner."""
    shape = Shape(1, 0, (False, False), 0, is_mapped=False, is_async=is_async)
    start = pb.StartFrame(expectedContentTypes=[TEXT])
    frames = [pb.InputFrame(payload=b"x", contentType=TEXT)] * 2
    result = harness(shape).frames(signal(start=start), *(signal(data=one) for one in frames))
    assert isinstance(result.error, ProtocolViolation)
