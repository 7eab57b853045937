"""The sample tools, called through the machinery and over gRPC, where everything that is told of them is true."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from functions import tools
from invoker.codecs.anyvalue import unpack
from invoker.protocols.toolbridge.errors import BridgeError
from tests.protocols.toolbridge.calling import called
from tests.transports.bridge import Bridged, packed, unpacked

ALL = (
    tools.count, tools.convert, tools.summarize, tools.days_until, tools.primes, tools.pause, tools.fill, tools.book,
    tools.caller,
)  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "args", "kwargs", "result"),
    [
        (tools.count, ("to be or\nnot to be",), {}, 6),
        (tools.count, ("to be or\nnot to be", "lines"), {}, 2),
        (tools.count, ("äb",), {"unit": "characters"}, 2),
        (tools.convert, (20.0, "celsius", "fahrenheit"), {}, 68.0),
        (tools.convert, (0,), {}, 273.15),
        (tools.convert, (0.0, "kelvin", "celsius"), {}, -273.15),
        (tools.summarize, ([1, 2, 6.0],), {}, {"count": 3, "mean": 3, "median": 2, "deviation": 7**0.5}),
        (tools.summarize, ([1],), {}, {"count": 1, "mean": 1, "median": 1, "deviation": None}),
        (tools.days_until, ("2026-12-24", "2026-12-01"), {}, 23),
        (tools.primes, (20,), {}, [2, 3, 5, 7, 11, 13, 17, 19]),
        (tools.pause, (0,), {}, "waited 0 s"),
        (tools.fill, ("Dear $name, $what",), {"name": "Bob", "what": "hi"}, "Dear Bob, hi"),
        (tools.book, ("978-3-16-148410-0",), {}, {"prefix": "978", "digits": "9783161484100", "check": "0"}),
        (tools.caller, (), {}, {}),
    ],
)
def test_a_tool_gives_what_its_docstring_says(tool: Any, args: Any, kwargs: Any, result: Any) -> None:
    """Called as callers of the bridge call it."""
    assert called(tool, *args, **kwargs) == pytest.approx(result)


@pytest.mark.parametrize(
    ("tool", "args", "code"),
    [
        (tools.count, ("a", "verses"), "allowed_values"),
        (tools.convert, (float("nan"),), "custom_rule"),
        (tools.convert, (1.0, "rankine"), "allowed_values"),
        (tools.summarize, ([],), "length"),
        (tools.summarize, (["1"],), "type"),
        (tools.days_until, ("tomorrow",), "pattern"),
        (tools.primes, (1,), "range"),
        (tools.pause, (6,), "range"),
        (tools.fill, ("",), "length"),
        (tools.book, ("978-3-16-148410-1",), "custom_rule"),
        (tools.book, ("978-x",), "custom_rule"),
    ],
)
def test_a_tool_refuses_what_it_says_it_does(tool: Any, args: Any, code: str) -> None:
    """Before it runs."""
    with pytest.raises(BridgeError) as caught:
        called(tool, *args)
    assert caught.value.details["code"] == code


def test_the_tools_over_grpc() -> None:
    """GetSessionTools tells of them, and a call by what it tells works: each example and each default."""
    with Bridged("lending", *ALL) as served:
        served.session()
        told = served.rpc("GetSessionTools", session_id="s1").tools
        assert [one.name for one in told] == sorted(one.__name__ for one in ALL)
        examples = [(one.name, text) for one in told for text in one.examples]
        assert len(examples) == 3
        for name, text in examples:
            call = ast.parse(text, mode="eval").body
            assert isinstance(call, ast.Call)
            args = [ast.literal_eval(one) for one in call.args]
            kwargs = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
            assert served.execute(name, *args, **kwargs).success, text
        by_name = {one.name: one for one in told}
        for one in by_name["convert"].arguments[1:]:
            value = unpack(one.default_value.SerializeToString())
            assert served.execute("convert", 20.0, **{one.name: value}).success
        answer = served.rpc("ExecuteTool", session_id="s1", tool_id="caller", context={"user": "Bob"})
        assert unpacked(answer.result) == {"user": "Bob"}


def test_T050_all_violations_arrive() -> None:
    """In-band, with field, rule, expected and actual, and the function does not run (T-051)."""
    with Bridged("lending", *ALL) as served:
        served.session()
        answer = served.rpc(
            "ExecuteTool",
            session_id="s1",
            tool_id="count",
            args=[packed(5)],
            kwargs={"unit": packed("verses"), "x": packed(1)},
        )
        assert (answer.success, answer.error.type) == (False, "ValidationError")
        details = answer.error.details
        assert (details["field"], details["code"]) == ("x", "unknown_arg")  # who takes what, before what they are
        others = json.loads(details["violations"])
        assert [(one["field"], one["code"]) for one in others] == [("text", "type"), ("unit", "allowed_values")]
        assert (others[0]["expected"], others[0]["actual"]) == ("str", "int")
        assert served.driver.engine.counters.opened == 0
