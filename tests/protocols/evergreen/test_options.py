"""Options of Evergreen; what they refuse is told by tests/author/test_reader_outputs.py."""

from __future__ import annotations

from typing import Any

import pytest

from invoker import function
from invoker.author.reader import read
from invoker.protocols import evergreen
from invoker.protocols.evergreen.options import nodes_of
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.models import source
from tests.protocols.evergreen.notation import A


def ticks() -> Any:
    yield ""


@pytest.mark.parametrize(
    "former", [{"sequence": True}, {"retain": False}, {"sequence": "out", "retain": []}, {"retain": ["out"]}], ids=str
)
def test_former_keywords_do_the_same_on_the_wire(former: dict[str, Any]) -> None:
    """The same frames for two values, except for the ids of nodes, which are drawn."""

    def fn() -> Any:
        yield ""

    with pytest.warns(DeprecationWarning, match="evergreen"):
        old = read(function(outputs="out", **former)(fn), name="ticks")
    new = read(function(outputs="out", options=[evergreen.Nodes(**former)])(fn), name="ticks")
    spoken = [
        Conversation(spec, models={"ticks": source("a", "b")}).send(A("ticks", {}, {"out": "r"})) for spec in (old, new)
    ]
    assert spoken[0].texts("r") == spoken[1].texts("r") == (["a", "b"] if former.get("sequence") else ["ab"])
    assert [type(one) for one in spoken[0].steps] == [type(one) for one in spoken[1].steps]


def test_without_the_option_everything_is_retained_and_nothing_is_a_sequence() -> None:
    """A function without a decorator has none."""
    assert nodes_of(read(ticks)) == evergreen.Nodes(sequence=False, retain=True)
