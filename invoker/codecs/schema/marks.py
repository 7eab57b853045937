"""Translates the constraints ("marks") of ``Annotated`` into keywords of JSON Schema.

The marks of msgspec, of `annotated_types` and of pydantic have the same names for the same things, so they are read by
name and none of these libraries is imported. A keyword that JSON Schema applies only to one kind of values, such as
``minLength``, is written for the kinds that the schema has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from invoker.codecs.schema.plain import NOTHING, plain_value
from invoker.fields.constraints import FIELD_LENGTH, FIELD_RULES, Constraints
from invoker.fields.marks import pattern_text

_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_RULES: Final[dict[str, dict[str, Any]]] = {
    "positive": {"exclusiveMinimum": 0},
    "non_negative": {"minimum": 0},
    "email": {"format": "email"},
    "url": {"format": "uri"},
    "uuid": {"format": "uuid"},
    "json": {"contentMediaType": "application/json"},
    "unique_items": {"uniqueItems": True},
    "finite": {},
}
_PYTHON_ONLY: Final = re.compile(r"\(\?(?![:=!]|<[=!])|\\[AZz]|\\N\{|[*+?}]\+").search
"""Matches syntax of Python's regular expressions that JavaScript's, which JSON Schema uses, do not have."""


def marked(schema: Mapping[str, Any], marks: Iterable[Any]) -> dict[str, Any]:
    """The schema with the keywords for these marks."""
    made = dict(schema)
    for mark in marks:
        for one in _flat(mark):
            _say(made, one)
    return made


def bounded(schema: Mapping[str, Any], said: Constraints) -> dict[str, Any]:
    """The schema with the constraints that were read from a parameter or a result."""
    made = dict(schema)
    low, high = _exact(said.min_value, -math.inf), _exact(said.max_value, math.inf)
    _bound(made, {"gt" if low[1] else "ge": low[0], "lt" if high[1] else "le": high[0]})
    _lengthen(made, said.min_length, said.max_length)
    _match(made, said.pattern)
    _follow(made, said.rules)
    if said.description:
        made["description"] = said.description
    return made


def _flat(mark: Any) -> Iterator[Any]:
    """A mark, and then the marks within it, if it is pydantic's ``Field``."""
    yield mark
    held = getattr(mark, "metadata", None)
    if isinstance(held, list | tuple) and type(mark).__module__.startswith("pydantic"):
        yield from held


def _say(made: dict[str, Any], mark: Any) -> None:
    kind = type(mark).__module__.partition(".")[0]
    if kind not in ("msgspec", "annotated_types", "pydantic"):
        return

    def said(name: str) -> Any:
        return getattr(mark, name, None)

    _bound(made, {name: said(name) for name in _BOUNDS})
    extra = said("extra") if isinstance(mark, msgspec.Meta) else None
    extra = extra if isinstance(extra, Mapping) else {}
    longest = extra[FIELD_LENGTH] if FIELD_LENGTH in extra else said("max_length")
    _lengthen(made, said("min_length"), longest)
    _match(made, said("pattern"))
    _follow(made, extra.get(FIELD_RULES, ()))
    for name in ("title", "description"):
        if isinstance(words := said(name), str) and words:
            made[name] = words
    if isinstance(examples := said("examples"), list | tuple) and (plain := plain_value(examples)) is not NOTHING:
        made["examples"] = plain
    for name in ("extra_json_schema", "json_schema_extra"):
        if isinstance(more := said(name), Mapping) and (plain := plain_value(more)) is not NOTHING:
            made.update(plain)


def _bound(made: dict[str, Any], said: Mapping[str, Any]) -> None:
    for name, word in _BOUNDS.items():
        value = said.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            made[word] = value


def _lengthen(made: dict[str, Any], least: Any, most: Any) -> None:
    for kind in _kinds(made):
        words = zip(_LENGTHS.get(kind, ()), (least, most), strict=False)
        made.update({word: value for word, value in words if isinstance(value, int)})


def _match(made: dict[str, Any], pattern: Any) -> None:
    if (isinstance(pattern, str | re.Pattern)) and (text := pattern_text(pattern)):
        made["x-pattern" if _PYTHON_ONLY(text) else "pattern"] = text


def _follow(made: dict[str, Any], rules: Iterable[str]) -> None:
    own = []
    for name in rules:
        if name == "non_empty":
            least = [_LENGTHS[kind][0] for kind in _kinds(made) if kind in _LENGTHS]
            made.update({word: max(1, made.get(word, 1)) for word in least})
        elif name in _RULES:
            made.update(_RULES[name])
        else:
            own.append(name)
    if own:
        made["x-rules"] = own


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """The kinds of values that can have a bound on their length; not bytes, since base64 has another length."""
    if "contentEncoding" in schema:
        return set()
    said = schema.get("type", ())
    found = {said} if isinstance(said, str) else set(said)
    return found.union(*(_kinds(one) for one in schema.get("anyOf", ())))


def _exact(value: Any, beyond: float) -> tuple[Any, bool]:
    """The bound that the author wrote, and whether it was exclusive.

    msgspec turns an exclusive bound of a float into the next float; it is recognised because its neighbour is written
    shorter.
    """
    if isinstance(value, float) and math.isfinite(value):
        before = math.nextafter(value, beyond)
        if len(repr(before)) < len(repr(value)):
            return (int(before) if before.is_integer() else before), True
    return value, False
