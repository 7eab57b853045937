"""What `Context.variables` does in functions, over real gRPC: with the bridge's session, and without one (T-126)."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from invoker import Context
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.errors import VariableError
from invoker.execution.bodies.variables import blocking
from invoker.execution.nested.scope import CatalogScope
from tests.conftest import SLOW
from tests.transports.bridge import SERVICE, TRANSPORTS, Bridged, packed, unpacked
from tests.transports.riff import form


def count(step: int, ctx: Context) -> list[Any]:
    """Add to a variable, and tell what there is."""
    variables = ctx.variables
    before = variables.get("count", 0)
    variables.set("count", before + step, tags={"kind": "counter"})
    variables.set("note", {"by": ctx.function})
    variables.delete("old")
    variables.delete("old")
    return [before, variables.get("count"), variables.list(), variables.list(tags=["kind=counter"])]


async def acount(step: int, ctx: Context) -> list[Any]:
    """The same in an async function."""
    variables = ctx.variables
    before = await variables.get("count", 0)
    await variables.set("count", before + step, tags={"kind": "counter"})
    await variables.set("note", {"by": ctx.function})
    await variables.delete("old")
    await variables.delete("old")
    return [
        before, await variables.get("count"), await variables.list(), await variables.list(tags=["kind=counter"])
    ]  # fmt: skip


def name_it(name: str, ctx: Context) -> str:
    """Write a variable, and tell what went wrong."""
    try:
        ctx.variables.set(name, 1)
    except VariableError as error:
        return error.code
    return "written"


async def aname_it(name: str, ctx: Context) -> str:
    try:
        await ctx.variables.set(name, 1)
    except VariableError as error:
        return error.code
    return "written"


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_T126_functions_and_rpcs_share_the_variables(kind):
    """What one writes the other reads, watchers hear of it; what a function makes is made by python."""
    function = form(kind, count, acount)
    with Bridged(kind, function, form(kind, name_it, aname_it)) as served:
        served.session()
        served.rpc(
            "SetSessionVariable", session_id="s1", variable_name="count", value=packed(5), create_if_missing=True
        )
        served.rpc("SetSessionVariable", session_id="s1", variable_name="old", value=packed(1), create_if_missing=True)
        watch = served.channel.unary_stream(
            f"/{SERVICE}/WatchSessionVariables",
            pb.WatchVariablesRequest.SerializeToString,
            pb.VariableUpdate.FromString,
        )(pb.WatchVariablesRequest(session_id="s1", include_initial=True), timeout=5 * SLOW)
        assert [next(watch).name for _ in range(2)] == ["count", "old"]
        response = served.execute(function.__name__, step=2)
        assert response.success, response.error
        assert unpacked(response.result) == [5, 7, ["count", "note"], ["count"]]
        assert [(one.name, one.operation) for one in (next(watch), next(watch), next(watch))] == [
            ("count", "update"), ("note", "set"), ("old", "delete")
        ]  # fmt: skip
        got = served.rpc("GetSessionVariable", session_id="s1", variable_name="note", include_metadata=True)
        assert unpacked(got.value) == {"by": function.__name__}
        assert (got.metadata.created_by, got.metadata.type) == ("python", "map")
        served.rpc("CleanupSession", session_id="s1")
        with pytest.raises(grpc.RpcError) as caught:
            next(watch)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_T126_a_function_hears_what_cannot_be(kind):
    """As an exception with a code; one that it does not catch is the error of the call."""
    function, counting = form(kind, name_it, aname_it), form(kind, count, acount)
    with Bridged(kind, function, counting) as served:
        served.session()
        assert unpacked(served.execute(function.__name__, "fine").result) == "written"
        assert unpacked(served.execute(function.__name__, "").result) == "variable_name"
        assert unpacked(served.execute(function.__name__, "x" * 257).result) == "variable_name"


def test_outside_of_a_session_variables_say_so():
    """To a function that was called by riff."""
    with Bridged("direct-lending", name_it) as served:
        served.driver.engine.scope = CatalogScope(served.driver)
        assert served.call(b"a").half_close().rest() == [b'"no_session"']


def test_a_value_that_cannot_be_sent_is_refused_before_anything_is_asked():
    """In the function's own line."""
    asked: list[Any] = []
    with pytest.raises(Exception, match="the value"):
        blocking(asked.append).set("a", object())
    assert asked == []
