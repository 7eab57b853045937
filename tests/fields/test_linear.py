"""`invoker.fields.linear`: what RE2 runs means the same to it as to Python's `re`, and the rest stays with that."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker import Field
from invoker.author.prepare import prepare_function
from invoker.errors import SpecError
from invoker.fields.constraints import constraints_of
from invoker.fields.linear import linear_search, written_for_re2
from tests.fields.test_backtracking import DOUBLING

pytest.importorskip("re2", reason="the extra re2 is not installed")

ALIKE = [
    r"^\d+$", r"\w", r"\W", r"\S\s", r"[^\W_]", r"[^\d\s]x?", "a$", r"^a|b$", "(a|b$)", r"\Ab\Z", ".", "a.b", "[^a]",
    "^(?:a|aa)+$", "x{2,}", "x{1,3}y??", r"[\]\-a]", "", "^$", r"(?P<n>a)b", "é+", r"[à-ü]", r"^(\w+\s?)*$", "\\\n$",
]  # fmt: skip

NOT_ALIKE = [
    r"\bfoo", "(?i)a", "(?m)^a$", "(?s).", "(?a)\\w", "(?=a)b", "(?<!a)b", r"(a)\1", "(a)(?(1)b|c)", "(a?)*", "(a|)+",
    "a++", "(?>a)b", "a$b", "(a$)+", "($|a)b", "(?i:a)b", ".{1,500}", "(?:a{1,30}){1,30}",
]  # fmt: skip

SIGNS = [*"ab xy_-]\n\r0é9", "\u0660", "\u2028", "\x1c", "\x85", "ü", "\0", "\U0001f600", "\u017f"]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALIKE), st.lists(st.sampled_from(SIGNS) | st.characters(exclude_categories=["Cs"]), max_size=6))
def test_what_re2_runs_finds_what_python_finds(pattern: str, signs: list[str]) -> None:
    """Classes of Unicode, and ``$`` before the last line end among them."""
    text, search = "".join(signs), linear_search(pattern)
    assert search is not None
    assert search(text) is (re.search(pattern, text) is not None), (pattern, text)


@pytest.mark.parametrize("written", [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"])
def test_each_sign_of_unicode_is_in_the_same_classes(written: str) -> None:
    """Whatever versions of Unicode the two know."""
    some, all_of = linear_search(written), linear_search(f"^{written}+$")
    assert some is not None
    assert all_of is not None
    signs = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x20000), 0xE0100, 0x10FFFF]))
    within, without = "".join(re.findall(f"{written}+", signs)), re.sub(f"{written}+", "", signs)
    assert all_of(within), [hex(ord(one)) for one in within if not all_of(one)]
    assert not some(without), [hex(ord(one)) for one in without if some(one)]


@pytest.mark.parametrize("pattern", NOT_ALIKE)
def test_what_means_something_else_stays_with_python(pattern: str) -> None:
    """Nor does RE2 take what is large for it."""
    re.compile(pattern)
    assert written_for_re2(pattern) is None


def test_half_a_surrogate_pair_is_no_text() -> None:
    """It is refused, and nothing breaks."""
    search = linear_search("a")
    assert search is not None
    assert not search("a\ud800")


@pytest.mark.parametrize("pattern", DOUBLING)
def test_patterns_that_double_are_taken_and_answer_at_once(pattern: str) -> None:
    """At a parameter, of the longest text; msgspec matches those deeper within, so they are refused."""
    check = constraints_of(Annotated[str, Field(pattern=pattern)]).checker()
    assert check is not None
    for text in ("a" * 65_535 + "!", "xa1 " * 16_000 + "\0"):
        list(check(text))

    def deep(names: Any) -> str: ...

    deep.__annotations__["names"] = list[Annotated[str, Field(pattern=pattern)]]
    with pytest.raises(SpecError, match="takes twice as long with each repetition"):
        prepare_function(deep)
