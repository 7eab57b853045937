"""What type checkers and editors know of sync clients: the parameters and results of the async ones."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = """
from typing import Any, assert_type

from invoker import Message
from invoker.client import (
    Received, SyncAnswer, SyncCall, SyncEvergreenSession, SyncFederatedClient, SyncRiffClient, SyncToolBridge,
)
from invoker.client.toolbridge import Change, Health, SyncStream

with SyncRiffClient("x", max_output_bytes=3) as client:
    call = client.invoke([[1]], accept="a/b")
    assert_type(call, SyncCall)
    assert_type(list(call), list[Received])
    assert_type(call.collect(), list[Received])
with SyncEvergreenSession("x", extensions=("drop",)) as session:
    answer = session.act("A", {"x": iter([1])}, outputs=("a", "b"))
    assert_type(answer, SyncAnswer)
    assert_type(answer["a"].text(), str)
    assert_type(list(answer.messages()), list[Message[Any]])
    session.drop(session.node())
    answer.cancel()
with SyncToolBridge("x") as bridge, bridge.session() as tools:
    assert_type(bridge.health(), Health)
    assert_type(tools.variables.watch("a"), SyncStream[Change])
    assert_type(next(tools.variables.watch("a")), Change)
SyncFederatedClient("x", "y").run(3)
"""

WRONG = """
from invoker.client import SyncEvergreenSession, SyncFederatedClient, SyncToolBridge

SyncToolBridge("x", nope=1)
SyncToolBridge("x").session().close(force="yes")
SyncEvergreenSession("x").act(1)
SyncFederatedClient("x")
"""


@pytest.mark.timeout(300)
def test_parameters_and_results_have_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each call that the async client would refuse is an error."""
    monkeypatch.setenv("MYPY_CONFIG_FILE_DIR", "")  # mypy sets it, and whoever runs after this test would inherit it
    api = pytest.importorskip("mypy.api")
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(PROGRAM)
    wrong.write_text(WRONG)
    told, _, _ = api.run(["--strict", "--no-error-summary", "--hide-error-context", str(right), str(wrong)])
    errors = [line.partition(" error: ") for line in told.splitlines() if " error: " in line]
    assert {int(where.split(":")[1]) for where, _, _ in errors if "wrong.py" in where} == {4, 5, 6, 7}, told
    assert [text for where, _, text in errors if "wrong.py" not in where] == []
