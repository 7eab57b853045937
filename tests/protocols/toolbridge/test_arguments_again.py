"""Arguments of tools given in a way that was seen before, and names that no caller may give."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from invoker import Context, Field
from invoker.author.reader import read
from invoker.codecs.anyvalue import pack
from invoker.protocols.toolbridge.arguments import Arguments
from invoker.protocols.toolbridge.errors import BridgeError


def checked(a: Annotated[int, Field(ge=0)], b: int = 0) -> int:
    return a + b


def open_to_all(a: int, ctx: Context, **more: Any) -> int:
    return a


@pytest.mark.parametrize("wrong", ["x", -1, None, 0.5])
def test_T040_T051_a_way_that_was_right_before_is_checked_again(wrong: object) -> None:
    """How arguments are bound is remembered by their number and names, and says nothing of their values."""
    arguments = Arguments(read(checked))
    for _ in range(2):
        assert arguments.bind([pack(1)], {"b": pack(2)}).names == ("a", "b")
        with pytest.raises(BridgeError) as caught:
            arguments.bind([pack(wrong)], {"b": pack(2)})
        assert caught.value.details["field"] == "a"
        with pytest.raises(BridgeError) as caught:
            arguments.bind([pack(1)], {"b": pack("x")})
        assert caught.value.details["field"] == "b"


def test_T039_what_the_function_is_given_by_others_is_no_extra_keyword() -> None:
    """A caller could else put something in the place of the context."""
    arguments = Arguments(read(open_to_all))
    assert arguments.bind([pack(1)], {"extra": pack(2)}).names == ("a", "extra")
    with pytest.raises(BridgeError) as caught:
        arguments.bind([pack(1)], {"ctx": pack(2)})
    assert (caught.value.details["code"], caught.value.details["field"]) == ("unknown_arg", "ctx")
