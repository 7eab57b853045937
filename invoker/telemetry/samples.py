"""Makes an example call of a function: the command, and a value for each input (R-005).

Each value is checked by the conversion that a call uses; there is no example for a type without a valid value.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from invoker.author.spec import IGNORED, FunctionSpec, StreamSpec, Take
from invoker.codecs.annotations import is_array
from invoker.codecs.typed import BYTES_LIKE, adapter, converter, fields, holds_pydantic, is_any, leaves, members

_AT_HOME = ("127.0.0.1", "::1", "0.0.0.0", "::")  # noqa: S104 - the addresses that localhost may mean
_TEXTS = ("NDArray[object_]", "NDArray[str_]", "NDArray[bytes_]")
_MOST_ELEMENTS = 12
_DEEPEST = 8
_ATTEMPTS = 5


def call_command(spec: FunctionSpec, address: str, *, is_one: bool) -> str:
    """The arguments after ``python -m invoker``; empty if no value is known for an input.

    Args:
        spec: The spec of the function.
        address: The address of the gRPC transport.
        is_one: Whether there is no other function.
    """
    arguments = sample_arguments(spec)
    if arguments is None:
        return ""
    which = [] if is_one else ["--function", spec.name]
    return f"{shlex.join(['call', address, *which])} {arguments}".rstrip()


def chat_command(spec: FunctionSpec, address: str) -> str:
    """The arguments that start a chat with a function over Evergreen; empty if it is not made for chats."""
    return shlex.join(["chat", address, "--action", spec.name]) if _is_chat(spec) else ""


def near(host: str, address: str) -> str:
    """The address that a caller on this machine uses, for a transport that listens on a host."""
    return f"localhost:{address.rpartition(':')[2]}" if host in _AT_HOME else address


def sample_arguments(spec: FunctionSpec) -> str | None:
    """The arguments of ``invoker call`` with a value for each input, in shell syntax; None if no value is known."""
    # The inputs that a caller without names sends; the first option if there are no other inputs.
    streams = tuple(one for one in spec.inputs if not one.is_ignored) or spec.spare[:1]
    try:
        values = [_sample(one.type) for one in streams]
    except LookupError:
        return None
    is_json = not all(_is_plain(one, value) for one, value in zip(streams, values, strict=True))
    words = ["--json"] if is_json else [] if spec.inputs or values else ["--no-input"]  # `call` adds a trigger itself
    for index, value in enumerate(values):
        text = json.dumps(value) if is_json or not isinstance(value, str) else value
        words += ["--data", text] if index == 0 else ["--arg", f"{index}={text}"]
    if len(spec.outputs) != 1 and not spec.open_outputs:
        words += ["--outputs", ",".join(one.name for one in spec.outputs)]
    return shlex.join(words)


def _is_chat(spec: FunctionSpec) -> bool:
    """Whether the function reads a stream of messages with headers, as a conversation has, and streams text."""
    if len(spec.inputs) != 1 or len(spec.outputs) != 1:
        return False
    said = spec.inputs[0]
    return said.take is Take.MESSAGE and not said.single and spec.outputs[0].type is str


def _is_plain(stream: StreamSpec, value: Any) -> bool:
    """Whether the value can be typed as plain text, like numbers, booleans, text and bytes.

    Without an annotation text is a str, and 7 would be "7"; a function that takes messages sees their media types.
    """
    if is_any(stream.type) and stream.take is Take.PAYLOAD:
        return False
    kinds = [one for one in members(stream.type) if isinstance(one, type)]
    return isinstance(value, (int, float)) or any(one in (str, *BYTES_LIKE) for one in kinds)


def _sample(type_: Any, depth: int = 0) -> Any:
    """A value of this type, in its JSON form.

    Raises:
        LookupError: No such value is known.
    """
    if is_array(type_):
        return _array(type_)
    if type_ is IGNORED or is_any(type_):
        return 7
    if any(isinstance(one, type) and issubclass(one, BYTES_LIKE) for one in members(type_)):
        return "hello"
    try:
        convert = converter(type_)
        schema = adapter(type_).json_schema() if holds_pydantic(type_) else msgspec.json.schema(type_)
        known = schema.get("$defs", {})
        for attempt in range(_ATTEMPTS):
            value = _by_field(type_, schema, depth) if attempt == 0 else None
            value = value or _value(schema, known, attempt)
            if _fits(convert, value):
                return value
    except Exception as error:  # msgspec refuses a type without a form in JSON by many classes of errors
        raise LookupError(f"no value of {type_} is known") from error
    raise LookupError(f"no value of {type_} is known")


def _by_field(type_: Any, schema: Mapping[str, Any], depth: int) -> dict[str, Any] | None:
    """An object whose required fields have samples of their own; None if only the schema can give one."""
    known = schema.get("$defs", {})
    shape = known.get(schema.get("$ref", "").rpartition("/")[2], schema)
    annotations = fields(type_) or {}
    wanted = shape.get("required", ())
    if depth > _DEEPEST or not wanted or not annotations.keys() >= set(wanted):
        return None
    try:
        return {name: _sample(annotations[name], depth + 1) for name in wanted}
    except LookupError:
        return None


def _fits(convert: Callable[[Any], Any], value: Any) -> bool:
    try:
        convert(value)
    except Exception:  # noqa: BLE001 - a class may refuse by raising anything
        return False
    return True


def _value(schema: Mapping[str, Any], known: Mapping[str, Any], attempt: int, depth: int = 0) -> Any:
    """Make a value that fits a JSON schema, without its optional parts.

    Args:
        schema: A schema of msgspec or pydantic.
        known: Schemas by name.
        attempt: The number of the value to try, if there are several candidates.
        depth: How many schemas surround this one.
    """
    if depth > _DEEPEST:
        raise TypeError("a value of itself")

    def inner(one: Mapping[str, Any]) -> Any:
        return _value(one, known, attempt, depth + 1)

    if "$ref" in schema:
        return inner(known[schema["$ref"].rpartition("/")[2]])
    for given in ("examples", "enum"):
        if schema.get(given):
            return schema[given][0]
    if "const" in schema:
        return schema["const"]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return inner(min(schema[choice], key=lambda one: _RANKS.get(one.get("type", ""), 1)))
    return _of_kind(schema, attempt, inner)


def _of_kind(schema: Mapping[str, Any], attempt: int, inner: Callable[[Any], Any]) -> Any:
    match schema.get("type"):
        case "object":
            found = {name: inner(schema["properties"][name]) for name in schema.get("required", ())}
            more = schema.get("additionalProperties")
            return found if found or not isinstance(more, dict) else {"key": inner(more)}
        case "array":
            return _list(schema, inner)
        case "string":
            text = (*_FORMATS.get(schema.get("format", ""), ()), "hello", *_TIMES, "7")[attempt]
            return text[: schema.get("maxLength")].ljust(schema.get("minLength", 0), "o")
        case "integer" | "number":
            return _number(schema)
        case kind:
            return {"boolean": True, "null": None}.get(str(kind), 7)


def _list(schema: Mapping[str, Any], inner: Callable[[Any], Any]) -> list[Any]:
    """Make a list of one element if any number is allowed; an empty one if a class contains lists of itself."""
    fixed, least, items = schema.get("prefixItems", ()), schema.get("minItems", 0), schema.get("items")
    rest = [items or {}] * max(least - len(fixed), not fixed and items is not False)
    try:
        return [inner(one) for one in (*fixed, *rest)]
    except TypeError:
        if fixed or least:
            raise
        return []


def _number(schema: Mapping[str, Any]) -> float:
    """The number 7, or the nearest allowed one."""
    step = schema.get("multipleOf", 1 if schema["type"] == "integer" else 0)
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    if step:
        low, high = low + ("exclusiveMinimum" in schema), high - ("exclusiveMaximum" in schema)
        at = min(max(7, low), high)
        return int(math.ceil(at / step) * step)
    if low < 7 < high:
        return 7
    if math.inf not in (-low, high):
        return float(low + high) / 2
    return float(low + 1 if low > -math.inf else high - 1)


_RANKS = {"string": 0, "null": 2}

_TIMES = ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "12:00:00")
_FORMATS = {
    "date-time": _TIMES, "date": ("2026-01-31",),
    "time": ("12:00:00", "12:00:00Z"), "duration": ("PT1H",), "uuid": ("12345678-1234-4678-9234-567812345678",),
    "decimal": ("1.5",), "email": ("a@example.org",), "uri": ("https://example.org/",),
}  # fmt: skip


def _array(type_: Any) -> Any:
    """A small array as nested lists: sizes that are not fixed become 1, or 0 if the array would be long."""
    from invoker.tensors import array_spelled, numeric, shape_of

    one = next((one for one in leaves(type_) if array_spelled(one)), type_)
    declared = shape_of(one, "")
    sizes = [max(size, 1) if size else 0 for size in numeric(declared)] if declared is not None else [1]
    value: Any = "hello" if array_spelled(one) in _TEXTS else 0
    if math.prod(sizes) > _MOST_ELEMENTS:
        sizes = [0]
    for size in reversed(sizes):
        value = [value] * size
    return value
