"""`invoker.codecs.refusal`: texts for the peer."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs.refusal import quote, reason, refuse_decode, refuse_encode, spell
from invoker.core.policy import ErrorPolicy
from invoker.errors import DecodeError, EncodeError, Status, StatusError, StopInvocation
from invoker.errors.wording import Place
from tests.codecs.wire import PATIENT, Point, decode

IN, OUT = Place("input", 0), Place("output", 0)


def test_a_refusal_says_where_what_and_why() -> None:
    """In this order."""
    assert refuse_decode("why", IN, "a/b").detail == "input #0: a/b cannot be decoded: why"
    assert refuse_decode(ValueError("why"), IN, "a/b", Point).detail == "input #0: a/b cannot become Point: why"
    assert refuse_encode(KeyError("k"), OUT, "a/b", int).detail == "output #0: int cannot be a/b: KeyError: 'k'"


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Renamed(msgspec.Struct, rename="camel"):
    my_size: Literal["S", "M"] = "M"


@dataclass
class Shirt:
    size: Literal["S", 7] = 7
    colours: tuple[str, Colour] | None = None
    names: Mapping[str, list[Renamed]] = field(default_factory=dict)
    keys: dict[Literal["a", "b"], int] = field(default_factory=dict)


class Sizes(TypedDict):
    of_all: list[Literal["S", "M"]]


COLOURS = "; expected one of 'red', 'green'"


@pytest.mark.parametrize(
    ("type_", "payload", "end"),
    [
        (Colour, b'"x"', f"'x'{COLOURS}"), (list[Colour], b'["it\'s"]', f'"it\'s" - at `$[0]`{COLOURS}'),
        (Literal["S", "M"], b'"x"', "Invalid enum value 'x'"),  # they stand in front, where the annotation is spelt
        (Shirt, b'{"size": "x"}', "'x' - at `$.size`; expected one of 'S', 7"),
        (Shirt, b'{"size": 8}', "8 - at `$.size`; expected one of 'S', 7"),
        (Shirt | None, b'{"colours": ["x", "x"]}', f"'x' - at `$.colours[1]`{COLOURS}"),
        (list[Shirt], b'[{"names": {"a": [{"mySize": "x"}]}}]',
         "'x' - at `$[0].names[...][0].mySize`; expected one of 'S', 'M'"),
        (Shirt, b'{"keys": {"x": 1}}', "'x' - at `key` in `$.keys`; expected one of 'a', 'b'"),
        (Sizes, b'{"of_all": ["S", "`$.of_all`"]}', "'`$.of_all`' - at `$.of_all[1]`; expected one of 'S', 'M'"),
        (tuple[Literal[1, 2], ...], b"[1, 3]", "3 - at `$[1]`; expected one of 1, 2"),
        (dict[str, Literal[tuple(range(9))]], b'{"a": 9}',
         "9 - at `$[...]`; expected one of 0, 1, 2, 3, 4, 5, 6, 7 and 1 more"),
    ],
)  # fmt: skip
def test_the_choices_are_listed_where_none_was_met(type_: Any, payload: bytes, end: str) -> None:
    """Of an Enum and of a Literal, wherever it stands within a value."""
    with pytest.raises(DecodeError) as refused:
        decode("application/json", payload, type_)
    assert refused.value.detail.endswith(end)


def test_our_own_errors_stay_and_learn_where() -> None:
    """Once."""
    first = DecodeError(": x", place=IN)
    assert refuse_decode(first, IN, "a/b") is first
    assert refuse_decode(DecodeError("x"), IN, "a/b").detail == "input #0: x"
    assert refuse_encode(EncodeError("x"), OUT, "a/b", int).detail == "output #0: x"
    assert refuse_encode(StatusError(Status.ABORTED, "y"), OUT, "a/b", int).detail == "output #0: int cannot be a/b: y"


def test_the_end_of_an_invocation_is_no_refusal() -> None:
    """It goes on its way."""
    with pytest.raises(StopInvocation):
        refuse_decode(StopInvocation(), IN, "")
    with pytest.raises(StopInvocation):
        refuse_encode(StopInvocation(), IN, "", int)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("cannot open /home/me/secret.txt", "cannot open <path>"), ("in '/etc/passwd'", "in '<path>'"),
        ("/a/b", "<path>"), ("C:/Users/me/x.py", "<path>"), ("see file:///home/me/x", "see <path>"),
        ("File \"/home/my docs/x.py\", line 3", 'File "<path>", line 3'), (r"in '\\\\host\\share\\x'", "in '<path>'"),
        ("expected '/' or '/' and a/b, not 'a/b'", "expected '/' or '/' and a/b, not 'a/b'"),
        (r"at C:\Users\me\x.py:3", "at <path>:3"), ("type a/b and 1/2", "type a/b and 1/2"),
        ("at `$.a/b`", "at `$.a/b`"),
        ("http://x/y/z", "http://x/y/z"), ("a\r\nX: y\0", "a  X: y\\x00"), ("\ud800", "\\ud800"), ("日本", "日本"),
    ],
)  # fmt: skip
def test_R117_texts_are_clean(text: str, clean: str) -> None:
    """Without paths, line ends and broken Unicode."""
    assert reason(ValueError(text)).text == clean


def test_errors_of_the_system_keep_their_paths_to_themselves() -> None:
    """Only what happened is told."""
    assert reason(FileNotFoundError(2, "No such file", "/x/y")).text == "FileNotFoundError: No such file"


def test_annotations_are_spelt_as_they_are_written() -> None:
    """Without modules."""
    assert [spell(one) for one in (int, Point, list[Point], int | None, dict[str, Any])] == [
        "int", "Point", "list[Point]", "int | None", "dict[str, Any]"
    ]  # fmt: skip


def test_long_texts_are_cut() -> None:
    """A peer's own words and those of an error."""
    assert len(quote("x" * 10_000)) < 130
    assert len(reason("x" * 10_000).text) < 410


@PATIENT
@given(st.text())
def test_any_text_is_made_fit_for_the_wire(text: str) -> None:
    """Printable and encodable."""
    for made in (reason(text).text, quote(text), reason(RuntimeError(text)).text):
        made.encode()
        assert made.isprintable()


@pytest.mark.parametrize(("shows", "why"), [("message", ": KeyError: 'secret'"), ("type", ": KeyError"), ("none", "")])
def test_R117_exceptions_of_a_value_show_what_the_setting_says(shows: str, why: str) -> None:
    """What the codec itself says stays."""
    policy = ErrorPolicy(shows)
    made = refuse_encode(KeyError("secret"), OUT, "text/plain", int)
    policy.apply(made)
    assert made.detail == f"output #0: int cannot be text/plain{why}"
    ours = refuse_encode("too long", OUT, "text/plain", int)
    policy.apply(ours)
    assert ours.detail.endswith("text/plain: too long")
    decoded = refuse_decode(KeyError("secret"), IN, "text/plain", int)
    policy.apply(decoded)
    assert decoded.detail == f"input #0: text/plain cannot become int{why}"


def test_R117_texts_have_no_addresses_of_objects() -> None:
    """They differ from call to call, and tell where things lie in memory."""
    assert reason(ValueError("malformed node: <ast.Name object at 0x7f12ab>")).text == "malformed node: <ast.Name>"
    assert reason(ValueError("<function f at 0x7F12AB> failed")).text == "<function f> failed"
