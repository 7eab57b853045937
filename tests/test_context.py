"""What a function may know about its invocation."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from invoker.context import Context, Inputs
from invoker.errors import EncodeError
from invoker.message import Headers


def test_R038_inputs_are_looked_up_by_index_and_by_name() -> None:
    """The caller's names go before the function's own."""
    inputs = Inputs(["a", "b"], ("numbers", "xs"), ("xs", "ys"))
    assert (inputs[0], inputs[-1], inputs["numbers"], inputs["xs"], inputs["ys"]) == ("a", "b", "a", "b", "b")
    assert (list(inputs), len(inputs)) == (["a", "b"], 2)


def test_R038_an_unknown_input_is_told_with_those_that_exist() -> None:
    """By name and by index."""
    with pytest.raises(KeyError, match="no input is named 'z'; there are 'numbers'"):
        Inputs(["a"], ("numbers",))["z"]
    with pytest.raises(IndexError):
        Inputs(["a"])[3]


def test_R057_of_equal_names_the_first_wins() -> None:
    """Duplicates and odd names are accepted."""
    assert Inputs(["a", "b", "c"], ("x y", "x y", ""))["x y"] == "a"


def test_R059_names_and_metadata_are_exposed() -> None:
    """As the caller sent them."""
    context = Context(
        "i1", "fn", input_names=("in",), output_names=("out",), accepts=("*/*",), metadata=Headers({"A": "b"})
    )
    assert (context.invocation_id, context.function, context.accepts) == ("i1", "fn", ("*/*",))
    assert (context.input_names, context.output_names, context.metadata["a"]) == (("in",), ("out",), "b")
    assert repr(context) == "Context(invocation_id='i1', function='fn')"


def test_remaining_counts_down_to_zero() -> None:
    """None without a deadline, never negative."""
    assert Context().remaining() is None
    left = Context(deadline=time.monotonic() + 100).remaining()
    assert left is not None
    assert 90 < left <= 100
    assert Context(deadline=time.monotonic() - 100).remaining() == 0


def test_cancelled_asks_each_time() -> None:
    """It is a view, not a copy."""
    context, outside = Context(), Outside()
    context.bind(outside)
    assert context.cancelled is False
    outside.has_ended = True
    assert (context.cancelled, Context().cancelled) == (True, False)


def test_a_released_context_is_over() -> None:
    """A function may keep it for longer than its invocation lasts; nobody answers then."""
    context, outside = Context(), Outside()
    context.bind(outside)
    assert context.wait(7) == "waited for 7"  # type: ignore[arg-type]
    context.release()
    assert context.cancelled is True
    with pytest.raises(TypeError, match="nothing here can await it any more"):
        context.wait(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nothing here can await it; write `async def`"):
        Context().wait(7)  # type: ignore[arg-type]


def test_it_is_slotted() -> None:
    """A misspelt attribute is an error at once."""
    with pytest.raises(AttributeError):
        Context().dead_line = 1  # type: ignore[attr-defined]


class Outside:
    """What a context asks of its driver."""

    def __init__(self) -> None:
        named = enumerate([("a", True), ("b", False)])
        self.outputs = [SimpleNamespace(index=i, name=name, is_wanted=is_wanted) for i, (name, is_wanted) in named]
        self.said: list[tuple[Any, ...]] = []
        self.has_ended = False

    def is_over(self) -> bool:
        return self.has_ended

    def wait(self, awaitable: Any) -> str:
        return f"waited for {awaitable}"

    def send(self, index: int, value: Any) -> None:
        self.said.append((index, value))

    def end(self, index: int) -> None:
        self.said.append((index,))


def test_E126_outputs_are_looked_up_by_index_and_by_name() -> None:
    """What is sent goes through the driver's transport, with the number of the output."""
    context, outside = Context(), Outside()
    context.bind(outside)
    context.outputs["b"].send(5)
    context.outputs[0].end()
    assert outside.said == [(1, 5), (0,)]
    assert (len(context.outputs), [one.index for one in context.outputs]) == (2, [0, 1])
    assert (context.wants("a"), context.wants(1)) == (True, False)


def test_a_context_without_an_invocation_has_no_outputs() -> None:
    """Before and after it there is nobody to send to."""
    context, outside = Context(), Outside()
    assert len(context.outputs) == 0
    with pytest.raises(EncodeError, match="there is no output 'a', because nothing is invoked"):
        context.outputs["a"]
    context.bind(outside)
    kept = context.outputs["a"]
    context.release()
    with pytest.raises(EncodeError, match="the invocation is over"):
        kept.send(1)
    with pytest.raises(EncodeError, match="the invocation is over"):
        kept.end()
    assert outside.said == []


class Packed:
    def __init__(self, value: Any, *, fails: bool = False) -> None:
        self.value = value
        self.fails = fails

    def to_dict(self) -> dict[str, Any] | None:
        if self.fails:
            raise ValueError("broken")
        return self.value if isinstance(self.value, dict) else None

    def unpack(self, kind: type[Any]) -> Any:
        return self.value if isinstance(self.value, kind) else None


def test_E088_a_config_is_found_by_its_kind() -> None:
    """The first that fits; packed ones are unpacked, others are taken as they are, broken ones say so."""
    context = Context(configs=(Packed(3), Packed({"a": 1}), Packed({"b": 2}), 2.5, object()))
    assert len(context.configs) == 5
    assert (context.config(dict), context.config(int), context.config(float)) == ({"a": 1}, 3, 2.5)
    assert (context.config(list), Context().config(dict)) == (None, None)
    with pytest.raises(ValueError, match="broken"):
        Context(configs=(Packed(1, fails=True),)).config(dict)
