"""DataFrames through the tool bridge, with the libraries and where they are missing."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.client import SyncToolBridge, ToolExecutionError
from tests.serving import serving
from tests.transports.bridge import Bridged

HAS_BOTH = all(importlib.util.find_spec(name) is not None for name in ("pandas", "pyarrow"))


@pytest.mark.skipif(not HAS_BOTH, reason="takes pandas and pyarrow: python -m tools agents")
def test_T108_tools_take_and_give_frames() -> None:
    """With an annotation, without one and with None beside it; in calls, streams and variables."""
    import pandas as pd

    same = pd.testing.assert_frame_equal
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    with (
        serving("tests.e2e.frame_functions") as served,
        SyncToolBridge(served.grpc) as bridge,
        bridge.session() as session,
    ):
        same(session.call("doubled", frame), frame * 2)
        same(session.call("doubled", frame=frame), frame * 2)
        assert session.call("rows", frame, count=3) == 6
        assert (session.call("kept", frame), session.call("kept")) == ("DataFrame", "NoneType")
        for number, one in enumerate(session.stream("parts", frame)):
            same(one, frame.iloc[[number]])
        session.variables.set("table", frame)
        same(session.variables.get("table"), frame)
        assert [one.type for one in session.variables.list()] == ["dataframe"]
        with pytest.raises(ToolExecutionError) as caught:
            session.call("doubled", [1, 2])
        assert (caught.value.code, caught.value.details["expected"]) == ("type", "DataFrame")


@pytest.mark.skipif(HAS_BOTH, reason="the libraries are here")
def test_T108_without_the_libraries_a_frame_is_refused() -> None:
    """By a ValidationError that names them; other calls go on."""

    def size(value: Any) -> int:
        return len(value)

    frame = AnyMessage(type_url="type.googleapis.com/pandas.DataFrame", value=b"PAR1...")
    with Bridged("direct-lending", size) as served:
        served.session()
        request = pb.ToolCallRequest(session_id="s1", tool_id="size", args=[frame])
        error = served.send("ExecuteTool", request).error
        assert (error.type, error.details["code"], error.details["field"]) == (
            "ValidationError", "missing_dependency", "value",
        )  # fmt: skip
        assert "pip install pandas pyarrow" in error.message
        assert served.execute("size", "abc").success
