"""Names that peers give, bound to what an invocation has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from invoker.author.reader import read
from invoker.core.naming import Names, Words, bind_outputs, listed
from tests.protocols.evergreen.action_engine.functions import echo, split, tag

WORDS = Words(repr, LookupError)


def names(**configured: str) -> Names:
    return Names([read(one, entrypoint=f"mod:{one.__name__}") for one in (echo, split)], configured)


def test_a_function_has_three_kinds_of_names() -> None:
    """Its own, its entrypoint, and configured ones, of which those count that lead to a function."""
    known = names(say="echo", tell="mod:echo", gone="nobody", split="echo")
    assert {name: spec.name for name in ("echo", "mod:echo", "say", "tell", "split") if (spec := known.get(name))} == {
        "echo": "echo",
        "mod:echo": "echo",
        "say": "echo",
        "tell": "echo",
        "split": "echo",
    }
    assert known.get("gone") is known.get("") is None
    assert ("say" in known, "mod:split" in known, "gone" in known) == (True, True, False)


def test_configured_names_are_offered_first_and_entrypoints_not() -> None:
    """A function is offered by its own name as well."""
    assert list(names(say="echo", gone="nobody").offered) == ["say", "echo", "split"]


def test_a_hint_is_a_name_that_is_near_or_all_of_them() -> None:
    """For the text of an error; nothing, where peers may not learn names."""
    assert names().hint("ecko") == "; did you mean 'echo'?"
    assert names(say="echo").hint("zzz") == "; there are say, echo, split"
    hidden = Names(names().offered.values(), {"say": "echo"}, tells=False)
    assert (hidden.hint("ecko"), hidden.offered) == ("", {})
    assert hidden.get("say") is hidden.get("echo") is not None


def test_a_port_is_listed_once() -> None:
    """The error quotes what the peer said."""
    ports = [("a", "1"), ("b", "2")]
    assert listed(ports, "input", WORDS) == {"a": "1", "b": "2"}
    with pytest.raises(LookupError, match="has the output 'b' twice"):
        listed([*ports, ("b", "3")], "output", WORDS)


def bound(of: Any, *given: str) -> tuple[list[tuple[int, str, str]], tuple[int, ...]]:
    outputs, unwanted = bind_outputs(read(of), {name: f"id of {name}" for name in given}, WORDS)
    return [(index, one.name, id) for index, one, id in outputs], unwanted


def test_outputs_are_bound_by_name_in_the_order_of_the_list() -> None:
    """Those that are not listed are unwanted."""
    assert bound(split, "odd", "even") == ([(1, "odd", "id of odd"), (0, "even", "id of even")], ())
    assert bound(split, "odd") == ([(1, "odd", "id of odd")], (0,))
    assert bound(split) == ([], (0, 1))
    with pytest.raises(LookupError, match="has no output 'third'; it has even, odd"):
        bound(split, "odd", "third")


def test_an_only_output_bears_any_name() -> None:
    """But there is one of it, and it may be left out."""
    assert bound(echo, "reply") == ([(0, "reply", "id of reply")], ())
    assert bound(echo) == ([], (0,))
    with pytest.raises(LookupError, match="has no output 'a'; it has out"):
        bound(echo, "a", "b")


def test_outputs_of_any_number_are_those_that_are_listed() -> None:
    """As many as there are, or none."""
    assert bound(tag, "b", "a") == ([(0, "b", "id of b"), (1, "a", "id of a")], ())
    assert bound(tag) == ([], ())


def test_a_function_without_outputs_has_none() -> None:
    """The error says so."""

    def sink(xs: Iterator[str]) -> None:
        """Take all."""

    with pytest.raises(LookupError, match="has no output 'a'; it has none"):
        bound(sink, "a")
