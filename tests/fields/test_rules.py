"""Named rules: those that are built in, and those of authors."""

from __future__ import annotations

import math
from typing import Any

import pytest

from invoker.errors import SpecError
from invoker.fields.rules import known_rules, rule, rule_named
from tests.conftest import cpu_within


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("non_empty", ["a", [0], {"a": 1}, b"x"], ["", " \n", [], {}, b""]),
        ("finite", [1.5, 0, [1, 2.5]], [math.nan, math.inf, [1, -math.inf]]),
        ("positive", [1, 0.1], [0, -1, math.nan]),
        ("non_negative", [0, 1], [-1, math.nan]),
        (
            "email",
            ["a@b.de", "a.b+c@d-e.co.uk", "é@exämple.org"],
            ["a", "@b.de", "a@b", "a b@c.de", "a@b..de", "a@-b.de"],
        ),
        (
            "url",
            ["http://a.de", "https://a.de:80/b?c#d", "ws://localhost"],
            ["a.de", "http://", "http://a:x/", "http://a b/"],
        ),
        (
            "uuid",
            ["12345678-1234-5678-1234-567812345678", "ABCDEF00-0000-0000-0000-000000000000"],
            ["x" * 36, "1" * 32],
        ),
        ("json", ["1", '{"a": [null]}'], ["", "{", "{'a': 1}"]),
        ("unique_items", [[], [1, 2], [1, "1", True], [[1], [2]], "abc"], [[1, 1], [[1], [1]], ["a", "b", "a"]]),
    ],
)
def test_T048_rules_that_are_built_in(name: str, right: list[Any], wrong: list[Any]) -> None:
    """Each is true of what follows it, and false or an exception for the rest."""
    follows = rule_named(name)
    assert [one for one in right if not follows(one)] == []
    for one in wrong:
        try:
            assert not follows(one), one
        except (ValueError, TypeError):
            continue


def test_T048_rules_are_fast_on_odd_text() -> None:
    """No text makes a rule slow."""
    with cpu_within(1):
        for text in ("a" * 300_000, "a@" + "a." * 100_000, "@" * 100_000, "a@" + "-" * 100_000, "a.-" * 80 + "@b"):
            for name in ("email", "url", "uuid"):
                assert not rule_named(name)(text) if name != "uuid" else True


def test_T048_an_unknown_rule() -> None:
    """The error says what is there, and how to register one."""
    with pytest.raises(
        SpecError, match=r"no rule is named 'emial' \(did you mean 'email'\?\); register a rule of your own"
    ):
        rule_named("emial")


def test_T048_rules_of_authors() -> None:
    """They are registered by name, returned unchanged, and replaced when their module is loaded again."""

    @rule("test_even")
    def even(value: int) -> bool:
        return value % 2 == 0

    assert even(2)
    assert rule_named("test_even") is even
    assert "test_even" in known_rules()

    @rule("test_even")
    def other(value: int) -> bool:
        return value % 2 == 1

    assert rule_named("test_even") is other


@pytest.mark.parametrize("name", ["email", ""])
def test_T048_names_that_rules_cannot_have(name: str) -> None:
    """Those of built-in rules, and none."""
    with pytest.raises(SpecError, match=r"@rule\("):
        rule(name)
    with pytest.raises(SpecError, match="is for a function"):
        rule("test_none")(5)  # type: ignore[type-var]
