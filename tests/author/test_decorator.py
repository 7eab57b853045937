"""The decorator `@function`."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.author.decorator import Options, function, options_of
from invoker.author.reader import read
from invoker.author.spec import Bounds, Style, Take
from invoker.errors import SpecError
from invoker.protocols import graphpipe
from invoker.tensors.declared import Tensor


def test_it_returns_the_function_as_it_was() -> None:
    """With and without arguments."""

    def fn(x: int) -> int:
        return x

    assert function(fn) is fn
    assert function(name="f")(fn) is fn
    assert options_of(fn).name == "f"  # type: ignore[union-attr]
    assert options_of(len) is None


def test_every_option_is_kept() -> None:
    """Texts become members of their enumerations."""

    @function(style="request-reply", inputs="a", outputs=["x", "y"], argument_type="message", concurrency=2, init=print)
    def fn(x: int) -> int:
        return x

    options = options_of(fn)
    assert options is not None
    assert (options.style, options.argument_type) == (Style.REQUEST_REPLY, Take.MESSAGE)
    assert (options.inputs, options.outputs, options.concurrency, options.init) == (("a",), ("x", "y"), 2, print)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"stile": 1}, "has no option 'stile'; did you mean 'style'?"),
        ({"zzzz": 1}, "has no option 'zzzz'; it has name, style"),
        ({"style": "steaming"}, "did you mean 'streaming'?"),
        ({"argument_type": "body"}, "is unknown; it can be 'payload', 'message', 'headers'"),
        ({"concurrency": 0}, "must be a whole number of at least 1"),
        ({"concurrency": True}, "must be a whole number of at least 1"),
        ({"hook_timeout_s": 0}, "must be a number of seconds above 0"),
        ({"inputs": (1,)}, "takes names; 1 is a int"),
    ],
)
def test_R040_unknown_choices_are_refused_at_start(said: dict[str, Any], text: str) -> None:
    """At import already, with the nearest name."""
    with pytest.raises(SpecError) as caught:
        function(**said)
    assert text in caught.value.detail


def test_what_takes_no_attributes_is_refused() -> None:
    """The fix is a wrapper."""
    with pytest.raises(SpecError, match="cannot be decorated with @function; wrap it"):
        function(len)


def test_G061_G087_casting_and_version_are_said() -> None:
    """Nothing is cast by default."""
    casting = graphpipe.Casting(inputs="same_kind")
    options = options_of(function(version="1.2", options=[casting])(lambda x: x))
    assert options is not None
    assert (options.options, options.version) == ({graphpipe.Casting: casting}, "1.2")
    assert (graphpipe.Casting().inputs, Options().options, Options().version) == ("no", {}, "")
    for said, text in (
        ({"inputs": "unsafe"}, "inputs='unsafe'.*it can be 'no', 'same_kind'"),
        ({"inputs": None}, "inputs=None"),
        ({"outputs": "unsafe"}, "outputs='unsafe'.*it can be 'no', 'same_kind'"),
    ):
        with pytest.raises(SpecError, match=text):
            graphpipe.Casting(**said)  # type: ignore[arg-type]  # what is wrong with it is the test
    with pytest.raises(SpecError, match=r"must be text, such as '1\.2'"):
        function(version=1.2)  # type: ignore[call-overload]  # as above


def test_G068_mappings_name_streams_and_tensors() -> None:
    """The names are as good as a tuple of them."""
    tensor = Tensor("int8", [3])
    options = options_of(function(inputs={"x": tensor}, outputs={"y": tensor, "z": tensor})(lambda x: x))
    assert options is not None
    assert (options.inputs, options.outputs) == (("x",), ("y", "z"))
    assert (options.input_tensors, options.output_tensors) == ({"x": tensor}, {"y": tensor, "z": tensor})
    with pytest.raises(SpecError, match=r"maps 'x' to a str; write Tensor\('float32', \[-1, 3\]\)"):
        function(inputs={"x": "float32"})  # type: ignore[dict-item]  # what is wrong with it is the test
    with pytest.raises(SpecError, match="has no option 'input_tensors'"):
        function(input_tensors={})  # type: ignore[call-overload]  # as above


def test_T032_limits_are_said_and_checked() -> None:
    """0 and None bound nothing."""
    said = {"timeout_s": 1.5, "max_calls": 2, "calls_per_minute": 3, "memory_bytes": 4, "isolation": "process"}
    options = options_of(function(**said)(lambda x: x))  # type: ignore[call-overload]  # a dict of several types
    assert options is not None
    assert {name: getattr(options, name) for name in said} == said
    for wrong, text in (
        ({"timeout_s": 0}, "must be a number of seconds above 0"),
        ({"timeout_s": True}, "must be a number of seconds above 0"),
        ({"timeout_s": float("inf")}, "must be a number of seconds above 0"),
        ({"max_calls": -1}, r"max_calls=-1.*0 \(which is no limit\) or more"),
        ({"calls_per_minute": 1.5}, "calls_per_minute=1.5"),
        ({"memory_bytes": True}, "memory_bytes=True"),
        ({"isolation": "thread"}, "isolation='thread'.*it can be 'process'"),
    ):
        with pytest.raises(SpecError, match=text):
            function(**wrong)  # type: ignore[call-overload]  # what is wrong with it is the test


def test_T032_limits_stand_in_the_spec() -> None:
    """Whoever shows or enforces them reads them there."""
    spec = read(function(timeout_s=1.5, max_calls=2, calls_per_minute=3, memory_bytes=4, isolation="process")(abs_of))
    assert (spec.bounds, spec.isolation) == (Bounds(1.5, 2, 3, 4), "process")
    assert read(lambda x: x).bounds == Bounds()


def abs_of(x: int) -> int:
    """A function with limits."""
    return abs(x)
