"""Options of the tool bridge: what a caller is told, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from invoker import function
from invoker.author.reader import read
from invoker.errors import SpecError
from invoker.protocols import toolbridge
from invoker.protocols.toolbridge.tools import Tool


@pytest.mark.parametrize(
    "former", [{"batch": True}, {"tools": ("a", "b")}, {"tools": "a"}, {"cacheable": True}, {"batch": False}], ids=str
)
def test_former_keywords_do_the_same_on_the_wire(former: dict[str, Any]) -> None:
    """A tool's message is the same, byte for byte."""

    def fn(x: int) -> int:
        return x

    with pytest.warns(DeprecationWarning, match="toolbridge"):
        old = read(function(**former)(fn))
    new = read(function(options=[toolbridge.ToolInfo(**former)])(fn))
    told = [Tool(spec).spec().SerializeToString(deterministic=True) for spec in (old, new)]
    assert told[0] == told[1]
    assert (told[0] == Tool(read(function(name="fn")(fn))).spec().SerializeToString(deterministic=True)) == (
        former == {"batch": False}
    )


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"batch": 1}, r"toolbridge\.ToolInfo\(batch=1\) must be True or False"),
        ({"cacheable": None}, r"toolbridge\.ToolInfo\(cacheable=None\) must be True or False"),
        ({"tools": 3}, r"toolbridge\.ToolInfo\(tools=3\) must be names of tools"),
        ({"tools": [3]}, r"toolbridge\.ToolInfo\(tools=\.\.\.\) takes names; 3 is a int"),
    ],
)
def test_values_that_it_cannot_have(said: dict[str, Any], text: str) -> None:
    """One sentence each."""
    with pytest.raises(SpecError, match=text):
        toolbridge.ToolInfo(**said)
