"""`invoker.fields.backtracking`: patterns that double their time with each character are found, and no others."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
import typing_extensions

from invoker import Field
from invoker.author.prepare import prepare_function
from invoker.codecs.validated import unapplied
from invoker.errors import SpecError
from invoker.fields import constraints
from invoker.fields.backtracking import LONGEST_MATCHED, doubling_text, longest_matched
from tests.conftest import SLOW

DOUBLING = [
    r"^(a+)+$",
    r"^(\w+\s?)*$",
    r"(x+x+)+y",
    r"^(\d+)*$",
    r"^(a|aa)+$",
    r"^(a|a)*$",
    r"^([a-zA-Z]+)*\d$",
    r"^user-(a+)+$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"^([a-zA-Z0-9]+[._-]?)+@x\.com$",
    r"^(?:(?:ab)+)+$",
]

STEADY = [
    r"^[a-z]+$",
    r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$",
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"\s+$",
    r"^(?:[a-z0-9-]+\.)+[a-z]{2,}$",
    r"^(a+b)+$",
    r"^(?:[A-Z][a-z]*\s)*$",
    r"^\s*\w+\s*=\s*\w+\s*$",
    r"^(?>a+)+$",
    r"^$",
    r"plain",
    r"^.*\.(png|jpe?g)$",
    r"^(#[0-9a-fA-F]{3}){1,2}$",
]


@pytest.mark.parametrize("pattern", DOUBLING)
def test_a_pattern_that_doubles_is_found_soon(pattern: str) -> None:
    """With a text that shows it; finding it takes no longer than a start can wait."""
    began = time.perf_counter()
    assert doubling_text(pattern)
    assert time.perf_counter() - began < 0.5 * SLOW


@pytest.mark.parametrize("pattern", STEADY)
def test_other_patterns_pass(pattern: str) -> None:
    """Those of mails, hosts, dates and ids among them; nothing is said of them, and it takes no time."""
    began = time.perf_counter()
    assert doubling_text(pattern) == ""
    assert time.perf_counter() - began < 0.5 * SLOW


@pytest.fixture
def _no_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraints, "linear_search", lambda _: None)


BOUNDS = [
    (r"\s+$", 2048),
    (r"a+$", 2048),
    (r"\w+@\w+", 2048),
    (r"(a|b)*c.*d.*e$", 256),
    (r"^.+@.+\..+$", 256),
    (r"\d+.*\d+.*x", 32),
    (r"^\w+@\w+", LONGEST_MATCHED),
    (r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", LONGEST_MATCHED),
    (r"^\S+(\s+\S+)*$", LONGEST_MATCHED),
]


@pytest.mark.parametrize(("pattern", "longest"), BOUNDS)
def test_patterns_whose_time_grows_faster_than_the_text_have_a_bound(pattern: str, longest: int) -> None:
    """Found soon; the longest text that is matched takes no time that anybody notices."""
    began = time.perf_counter()
    assert longest_matched(pattern) == longest
    assert time.perf_counter() - began < 2 * SLOW


@pytest.mark.usefixtures("_no_re2")
def test_T043_a_longer_text_is_refused_with_the_bound() -> None:
    """Without a match; one that is as long is matched."""
    check = constraints.constraints_of(Annotated[str, Field(pattern=r"a+$")]).checker()
    assert check is not None
    assert list(check("a" * 2048)) == []
    (problem,) = check("a" * 2049)
    assert problem.code == "pattern_input_too_long"
    assert problem.text == "has 2049 characters, and the pattern 'a+$' is matched with 2048 at most"


@pytest.mark.parametrize(("most", "is_refused"), [(None, True), (4000, True), (2048, False)])
def test_a_mark_of_msgspec_deeper_within_has_to_bound_the_text_itself(most: int | None, is_refused: bool) -> None:
    """Since msgspec matches it; a Field has the bound."""

    def deep(names: list[str]) -> str: ...

    deep.__annotations__["names"] = list[Annotated[str, msgspec.Meta(pattern=r"a+$", max_length=most)]]
    if is_refused:
        with pytest.raises(SpecError, match=r"'names' of 'deep': the time to match the pattern 'a\+\$' grows faster"):
            prepare_function(deep)
    else:
        prepare_function(deep)
    deep.__annotations__["names"] = list[Annotated[str, Field(pattern=r"a+$")]]
    prepare_function(deep)


def _plain_class(type_: Any) -> type:
    return type("Made", (), {"__annotations__": {"text": type_}})


def _typed_dict(type_: Any, config: Any) -> Any:
    made = typing_extensions.TypedDict("Made", {"text": type_})  # noqa: UP013 - the annotation is a value
    made.__pydantic_config__ = config
    return made


PYTHON = pydantic.ConfigDict(regex_engine="python-re")


def _model(type_: Any, config: Any) -> Any:
    return pydantic.create_model("Made", __config__=config, text=(type_, ...))


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "model": _model,
    "model-in-list": lambda *said: list.__class_getitem__(_model(*said)),
    "model-in-model": lambda *said: pydantic.create_model("Outer", made=(_model(*said), ...)),
    "dataclass": lambda type_, config: pydantic.dataclasses.dataclass(config=config)(_plain_class(type_)),
    "typed-dict": _typed_dict,
}
MARKS: dict[str, Callable[..., Any]] = {"field": pydantic.Field, "constraints": pydantic.StringConstraints}


@pytest.mark.parametrize(("most", "is_slow"), [(None, True), (4000, True), (2048, False)])
@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("form", FORMS)
def test_what_pydantic_gives_to_re_has_to_bound_the_text_itself(
    form: str, mark: str, most: int | None, is_slow: bool
) -> None:
    """By its ``regex_engine``, and every compiled pattern; its own engine takes no longer with any text."""
    for pattern, config in ((r"a+$", PYTHON), (re.compile(r"a+$"), PYTHON), (re.compile(r"a+$"), None)):
        type_ = Annotated[str, MARKS[mark](pattern=pattern, max_length=most)]
        said = unapplied(FORMS[form](type_, config)) or ""
        assert (
            said.startswith("the time to match the pattern 'a+$' grows faster than the length of the text") == is_slow
        ), said
    assert unapplied(FORMS[form](Annotated[str, MARKS[mark](pattern=r"a+$", max_length=most)], None)) is None


@pytest.mark.parametrize("mark", MARKS)
def test_what_pydantic_gives_to_re_is_tried_for_catastrophe(mark: str) -> None:
    """Whatever the longest text is; also within a list, and beside a mark that only pydantic applies."""
    doubling = Annotated[str, MARKS[mark](pattern=re.compile(r"^(e+)+$"), max_length=2048)]
    for type_ in (list[doubling], dict[str, doubling], Annotated[doubling, pydantic.AfterValidator(str.upper)]):
        assert "takes twice as long with each repetition" in (unapplied(type_) or "")
    assert "takes twice as long" in (
        unapplied(FORMS["model"](Annotated[str, MARKS[mark](pattern="^(e+)+$")], PYTHON)) or ""
    )


@pytest.mark.usefixtures("_no_re2")
def test_a_field_with_such_a_pattern_is_refused() -> None:
    """Where the author writes it, wherever it stands in an annotation."""
    with pytest.raises(
        SpecError, match=r"'\^\(c\+\)\+\$' takes twice as long with each repetition in a text " r"such as 'c"
    ):
        Field(pattern=r"^(c+)+$")


@pytest.mark.usefixtures("_no_re2")
def test_a_mark_of_others_with_such_a_pattern_is_refused_with_its_function() -> None:
    """When the function is read."""

    def foreign(name: Annotated[str, msgspec.Meta(pattern=r"^(d+)+$")]) -> str: ...

    foreign.__annotations__["name"] = Annotated[str, msgspec.Meta(pattern=r"^(d+)+$")]
    with pytest.raises(SpecError, match=r"takes twice as long with each"):
        prepare_function(foreign)


def test_what_the_text_advises_passes() -> None:
    """A possessive inner repeat gives back nothing."""
    assert doubling_text(r"^(a++)+$") == ""
