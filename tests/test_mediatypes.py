"""`invoker.mediatypes`: parsing, ranges, and the ranking of an Accept list."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from invoker.mediatypes import ANY, MAX_RANGES, MediaType, matches, parse, ranges, rank
from tests.conftest import cpu_within

PATIENT = settings(deadline=None)  # other tests may keep this machine busy
AVAILABLE = ("application/json", "text/plain", "application/octet-stream", "application/cloudevents+json", "text/csv")


def order(accept: str, available: tuple[str, ...] = AVAILABLE) -> list[str]:
    return [essence for essence, _ in rank(accept, available)]


def test_R060_a_media_type_is_compared_without_regard_to_case_and_its_parameters_are_parsed() -> None:
    """Quoted values and spaces are understood."""
    found = parse(' Application/JSON ; Charset="UTF-8" ;version = 2;')
    assert found == MediaType("application", "json", (("charset", "UTF-8"), ("version", "2")))
    assert (found.essence, found.charset, found.param("version"), found.param("q")) == (
        "application/json", "UTF-8", "2", None
    )  # fmt: skip


def test_quoted_values_may_hold_anything() -> None:
    """Escapes are undone on the way in and made on the way out."""
    found = parse(r'text/plain; a="x;y=\"1\", \\z"; b=""')
    assert found.params == (("a", 'x;y="1", \\z'), ("b", ""))
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    "text",
    ["", " ", "text", "text/", "/plain", "text/plain/x", "te xt/plain", "!![]not a type", "text/plain; charset",
     "a/b;=x",
     "text/plain; charset=utf 8", 'text/plain; charset="x', "text/plain, text/html", "téxt/plain", "text/plain\n",
     "*/json", "text/plain; a=b\r\nX: y", 'a/b; c="\x00"'],
)  # fmt: skip
def test_R066_a_malformed_media_type_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match=r"media type|malformed|wildcard"):
        parse(text)


def test_R067_wildcards_are_recognised() -> None:
    """Ranges and families are no concrete types."""
    assert all(parse(text).is_wildcard for text in ("*/*", "text/*", "application/*+json", "*/*+json"))
    assert not any(parse(text).is_wildcard for text in ("text/plain", "application/a+json", "x/y*"))


def test_a_suffix_names_the_family() -> None:
    """What follows the last plus."""
    assert [parse(f"application/{name}").suffix for name in ("json", "a+json", "a+b+xml")] == ["", "json", "xml"]


def test_only_keeps_named_parameters() -> None:
    """In their order, each once: the first is the one that counts."""
    assert str(parse("a/b;c=1;d=2;e=3").only("e", "c")) == "a/b;c=1;e=3"
    assert str(parse("a/b;c=1;d=2;C=3").only("c")) == "a/b;c=1"


@pytest.mark.parametrize(
    ("pattern", "essence", "expected"),
    [
        ("*/*", "a/b", True),
        ("a/*", "a/b", True),
        ("a/*", "c/b", False),
        ("a/b", "a/b", True),
        ("a/b", "a/c", False),
        ("a/*+json", "a/x+json", True),
        ("a/*+json", "a/json", False),
        ("a/*+json", "c/x+json", False),
    ],
)
def test_a_pattern_matches(pattern: str, essence: str, *, expected: bool) -> None:
    """By type, subtype and suffix."""
    assert matches(parse(pattern), parse(essence)) is expected


def test_R095_without_q_the_listing_order_wins() -> None:
    """Whatever our own order is."""
    assert order("text/plain, application/json") == ["text/plain", "application/json"]
    assert order("application/json,text/plain") == ["application/json", "text/plain"]
    assert order("image/png, text/csv , text/plain") == ["text/csv", "text/plain"]


def test_R096_q_counts_before_the_position() -> None:
    """Highest first; equal ones as they were listed."""
    assert order("text/plain;q=0.2, application/json") == ["application/json", "text/plain"]
    assert order("text/plain;q=0.5, text/csv;q=0.9, application/json;q=0.5") == [
        "text/csv", "text/plain", "application/json"
    ]  # fmt: skip


def test_R096_q_0_excludes() -> None:
    """Also from a range that covers it; a range may exclude all it covers."""
    assert order("text/plain;q=0, */*;q=0.1")[0] == "application/json"
    assert "text/plain" not in order("text/plain;q=0, */*;q=0.1")
    assert order("text/*;q=0, text/csv, */*;q=0") == ["text/csv"]
    assert order("application/json;q=0") == []


@pytest.mark.parametrize("q", ["high", "", '""', "1.5", "-1", "nan", "inf", "1e0", "0x1", "\u0660", "1_0", "0..5", "2"])
def test_R096_an_invalid_q_counts_as_1(q: str) -> None:
    """It is no reason to refuse."""
    assert order(f"application/json;q=0.9, text/plain;q={q or chr(34) * 2}")[0] in ("text/plain", "application/json")
    assert all(one.q == 1 for one in ranges(f"text/plain;q={q}"))


@pytest.mark.parametrize(("text", "q"), [("0", 0), ("0.", 0), ("0.000", 0), (".5", 0.5), ("1.000", 1), ("0.25", 0.25)])
def test_R096_a_valid_q_is_a_number_from_0_to_1(text: str, q: float) -> None:
    """With any number of digits, quoted or not."""
    assert [one.q for one in ranges(f'a/b;q={text}, a/b;q="{text}"; Q=1')] == [q, q]


def test_R096_the_most_specific_range_sets_the_q() -> None:
    """An exact type before a family, before type/*, before */*."""
    assert order("text/*;q=0.9, text/plain;q=0.1, application/json;q=0.5") == [
        "text/csv", "application/json", "text/plain"
    ]  # fmt: skip
    found = dict(rank("*/*;q=0.1, application/*;q=0.2, application/*+json;q=0.3, application/json;q=0.4", AVAILABLE))
    assert {essence: one.q for essence, one in found.items()} == {
        "application/json": 0.4,
        "application/cloudevents+json": 0.3,
        "application/octet-stream": 0.2,
        "text/plain": 0.1,
        "text/csv": 0.1,
    }


def test_R097_ranges_match_in_server_order() -> None:
    """`*/*` is everything, `text/*` is text."""
    assert order("*/*") == list(AVAILABLE)
    assert order("text/*") == ["text/plain", "text/csv"]
    assert order("*/*, text/plain") == list(AVAILABLE)
    assert order("text/plain, */*") == ["text/plain", *(one for one in AVAILABLE if one != "text/plain")]


def test_R098_a_family_is_offered_under_the_name_that_was_asked_for() -> None:
    """And never for a wildcard."""
    available = ("application/json", "application/*+json")
    assert order("application/vnd.api+json, */*;q=0.5", available) == ["application/vnd.api+json", "application/json"]
    assert order("application/*", available) == ["application/json"]


def test_R101_blank_means_no_preference_and_broken_elements_are_skipped() -> None:
    """When nothing is left there is nothing to offer."""
    assert ranges("") == ranges(" \t") == ANY
    assert order("") == list(AVAILABLE)
    assert order("image/png,,application/json") == order(", application/json ,") == ["application/json"]
    assert order("no type at all, application/json") == order("application/json, a/b/c") == ["application/json"]
    assert order('a/b;x="never closed, application/json') == ["application/json"]
    assert order("no type at all") == order(",") == []
    assert order("*") == order("*/*")


def test_commas_within_quotes_do_not_separate() -> None:
    """Nor does an escaped quote end them."""
    assert [str(one.media_type) for one in ranges(r'a/b;x="1,\",2";q=0.5, c/d')] == [r'a/b;x="1,\",2"', "c/d"]


def test_R102_parameters_do_not_take_part_in_matching() -> None:
    """The range keeps them for whoever honours them."""
    ((essence, wanted),) = rank("application/json;flavour=sweet;q=0.5", AVAILABLE)
    assert (essence, wanted.q, wanted.media_type.params) == ("application/json", 0.5, (("flavour", "sweet"),))


def test_RT35_the_accept_header_of_a_browser_is_json() -> None:
    """Through its */*."""
    assert order("text/html,application/xhtml+xml,*/*;q=0.8")[0] == "application/json"


def test_RT36_parameters_of_the_first_entry_hide_nothing() -> None:
    """A peer truncates there."""
    assert order("application/xml;q=0.9, application/json") == ["application/json"]


def test_a_range_that_cannot_be_satisfied_is_as_good_as_absent() -> None:
    """The next range for the same type counts, if there is one; q=0 still excludes."""

    def accepts(_: str, wanted: object) -> bool:
        return "klingon" not in str(wanted)

    listed = "text/plain;charset=klingon, application/json;q=0.5, text/plain;q=0.2"
    assert [essence for essence, _ in rank(listed, AVAILABLE, accepts=accepts)] == ["application/json", "text/plain"]
    assert rank("text/plain;charset=klingon", AVAILABLE, accepts=accepts) == []
    assert rank("text/plain;charset=klingon;q=0, text/*", ("text/plain",), accepts=accepts) == []


@pytest.mark.parametrize(
    "text",
    ['"' * 200_000, '"",' * 100_000, "a/b;" * 100_000, "a/b," * 100_000, 'a/b;x="' + '\\"' * 100_000, " ," * 200_000,
     'a/b;x="' + "\\" * 100_001, "a/b;" + " " * 200_000 + "x", "*" * 200_000],
)  # fmt: skip
def test_long_lists_cost_linear_time(text: str) -> None:
    """No text makes the patterns run away, and only so many elements are looked at."""
    with cpu_within(2):
        assert len(rank(text, AVAILABLE)) <= len(AVAILABLE)
        assert len(ranges(text)) <= MAX_RANGES


_TOKEN = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-+", min_size=1, max_size=6).filter(lambda one: one[0].isalnum())
_TYPE = st.sampled_from(["application", "text", "image", "x"])
_SUBTYPE = st.sampled_from(["json", "plain", "octet-stream", "csv", "png", "y"])
_RANGE = st.one_of(st.just("*/*"), _TYPE.map(lambda one: f"{one}/*"), st.builds("{}/{}".format, _TYPE, _SUBTYPE))
_LIST = st.lists(
    st.tuples(_RANGE, st.one_of(st.none(), st.integers(0, 1000))), min_size=1, max_size=6, unique_by=lambda one: one[0]
)


@PATIENT
@given(_LIST)
def test_R096_any_accept_list_gives_the_qs_of_the_oracle(listed: list[tuple[str, int | None]]) -> None:
    """Only q-values: on equal ones the oracle follows the server's order, riff the caller's."""
    text = ", ".join(one if q is None else f"{one};q={q / 1000}" for one, q in listed)
    oracle = parse_accept_header(text, MIMEAccept)
    found = rank(text, AVAILABLE)
    assert {essence: one.q for essence, one in found} == {
        one: oracle.quality(one) for one in AVAILABLE if oracle.quality(one)
    }
    qs = [one.q for _, one in found]
    assert qs == sorted(qs, reverse=True)


@PATIENT
@given(_LIST)
def test_R095_equal_qs_keep_the_order_of_the_list(listed: list[tuple[str, int | None]]) -> None:
    """Of two concrete entries with one q, the earlier one comes first."""
    text = ", ".join(one if q is None else f"{one};q={q / 1000}" for one, q in listed)
    found = [essence for essence, _ in rank(text, AVAILABLE)]
    concrete = [(one, 1000 if q is None else q) for one, q in listed if "*" not in one and q != 0 and one in AVAILABLE]
    wild = {1000 if q is None else q for one, q in listed if "*" in one}
    for first, second in pairwise(concrete):
        if first[1] == second[1] and first[1] not in wild:
            assert found.index(first[0]) < found.index(second[0])


@PATIENT
@given(st.text(max_size=60))
def test_any_text_is_ranked_or_gives_nothing(text: str) -> None:
    """Never an error."""
    assert {essence for essence, _ in rank(text, AVAILABLE)} <= {*AVAILABLE}


@PATIENT
@given(st.text(max_size=60))
def test_any_text_is_a_media_type_or_a_value_error(text: str) -> None:
    """What is parsed can be written and parsed again."""
    try:
        found = parse(text)
    except ValueError:
        return
    assert parse(str(found)) == found


@PATIENT
@given(_TOKEN, st.text('abc \t"\\,;=é~!', max_size=10))
def test_parameters_round_trip(name: str, value: str) -> None:
    """Whatever their value is."""
    one = MediaType("a", "b", ((name, value),))
    assert parse(str(one)) == one
