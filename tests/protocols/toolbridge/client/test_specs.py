"""Tests of tools as plain Python."""

from __future__ import annotations

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.client.toolbridge import ToolSession
from invoker.protocols.toolbridge.client.specs import Rules, tool_in


def test_what_is_not_said_is_none() -> None:
    """A bound of 0 is a bound, and a kind that nobody knows keeps its number."""
    spec = pb.ToolSpec(tool_id="m:f", name="f", validation=pb.ValidationRules(min_value=0))
    spec.type = 9  # type: ignore[assignment] # of a later version
    tool = tool_in(spec)
    assert tool.rules == Rules(min_value=0.0)
    assert tool.kind == "9"
    assert tool.result.default is None


async def test_tools_are_plain_python(session: ToolSession) -> None:
    """With what their arguments have to obey."""
    [tool] = await session.tools()
    assert (tool.id, tool.name, tool.kind) == ("mod:add", "add", "STREAMING")
    first, second = tool.arguments
    assert (first.is_required, first.default) == (True, None)
    assert (second.default, second.allowed_values) == (7, ("7", "8"))
    assert (second.rules.min_value, second.rules.max_value) == (0.0, None)
    assert (second.rules.min_length, second.rules.max_length, second.rules.custom) == (None, 3, ("positive",))
    assert (tool.limits.timeout_s, tool.limits.calls_per_minute) == (1.5, 9)
    assert tool.examples == (">>> add(1)",)
