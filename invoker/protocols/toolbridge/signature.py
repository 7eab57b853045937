"""`AgentSignature`: an agent's inputs and outputs, such as ``question, year: int -> answer: list[str]`` (T-133).

It is not parsed by the library that runs agents, since the library looks up names of types in modules, and the text
comes from a caller.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Final, Literal, Optional, Union

import msgspec

from invoker.codecs.typed import converter
from invoker.protocols.toolbridge.errors import BridgeError, Kind

_MOST: Final = 4096
_FIELDS: Final = 32
_DEPTH: Final = 8
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}").fullmatch
_TYPES: Final = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
    "Any": Any,
    "None": None,
    "List": list,
    "Dict": dict,
}
_TAKEN: Final = frozenset(
    [
        "completions",
        "config",
        "copy",
        "demos",
        "dspy",
        "fields",
        "instructions",
        "json",
        "lm",
        "max_iters",
        "new_signature",
        "next_thought",
        "next_tool_args",
        "next_tool_name",
        "prediction",
        "reasoning",
        "schema",
        "self",
        "signature",
        "trajectory",
    ]
)
"""Names that fields cannot have: DSPy takes fields as keyword arguments, and has its own meaning for these."""


class AgentSignature(msgspec.Struct, frozen=True):
    """The inputs and outputs of an agent.

    Attributes:
        inputs: The types of the inputs by name, in order.
        outputs: The types of the outputs by name, in order.
    """

    inputs: dict[str, Any]
    outputs: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> AgentSignature:
        """Parse a signature.

        Raises:
            BridgeError: The text is malformed.
        """
        if len(text) > _MOST:
            raise _malformed(f"it has {len(text)} characters and exceeds the limit of {_MOST}")
        sides = text.split("->")
        if len(sides) != 2:
            raise _malformed(f"{text!a} has {len(sides) - 1} arrows; expected 'input, input: type -> output: type'")
        inputs, outputs = _side(sides[0], "inputs"), _side(sides[1], "outputs")
        for name in outputs:
            if name in inputs:
                raise _malformed(f"the name {name!r} occurs twice")
        return cls(inputs, outputs)

    def given(self, values: dict[str, Any]) -> dict[str, Any]:
        """Convert the values of the inputs to their types (T-146).

        Raises:
            BridgeError: An input is missing, is not in the signature, or has another type.
        """
        for name in values:
            if name not in self.inputs:
                raise _input(name, "unknown", f"the signature has no input {name!r}; it has {', '.join(self.inputs)}")
        made = {}
        for name, type_ in self.inputs.items():
            if name not in values:
                raise _input(name, "missing", f"the input {name!r} is missing")
            try:
                made[name] = converter(type_)(values[name])
            except msgspec.ValidationError as error:
                raise _input(name, "type", f"the input {name!r}: {error}") from None
        return made


def _side(text: str, what: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not text.strip():
        raise _malformed(f"there are no {what}")
    for part in _split(text):
        name, colon, type_ = (one.strip() for one in part.partition(":"))
        if _NAME(name) is None:
            raise _malformed(f"{name!a} is not the name of a field: letters, digits and _, beginning with a letter")
        if name in _TAKEN or name.startswith(("model_", "dspy_")):
            raise _malformed(f"a field cannot be named {name!r}, because agents use this name for something else")
        if name in found:
            raise _malformed(f"the name {name!r} occurs twice")
        found[name] = _type(type_) if colon else str
    if len(found) > _FIELDS:
        raise _malformed(f"there are {len(found)} {what}, and the limit is {_FIELDS}")
    return found


def _split(text: str) -> list[str]:
    """Split a text at the commas outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        depth += (char in "[(" and not quote) - (char in "])" and not quote)
        if char == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _type(text: str) -> Any:
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _malformed(f"{text!a} is not a type") from None
    found = _read(tree, text, 0)
    try:
        msgspec.json.Decoder(found)
    except TypeError:  # such as list[int] | list[str]
        raise _malformed(f"the type {text[:100]!a} has alternatives that cannot be told apart") from None
    return found


def _read(node: ast.expr, text: str, depth: int) -> Any:
    if depth > _DEPTH:
        raise _malformed(f"the type {text[:100]!a} is nested too deeply")
    if isinstance(node, ast.Name) and node.id in _TYPES:
        return _TYPES[node.id]
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return Union[_read(node.left, text, depth + 1), _read(node.right, text, depth + 1)]  # noqa: UP007 - None | None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        name = node.value.id
        if name == "Literal" and inner and all(_is_literal(one) for one in inner):
            return Literal[tuple(one.value for one in inner if isinstance(one, ast.Constant))]
        given = [_read(one, text, depth + 1) for one in inner]
        if name in {"list", "List"} and len(given) == 1:
            return list[given[0]]  # type: ignore[valid-type]  # made at run time
        if name in {"dict", "Dict"} and len(given) == 2 and given[0] is str:
            return dict[str, given[1]]  # type: ignore[valid-type]  # likewise
        if name == "Optional" and len(given) == 1:
            return Optional[given[0]]  # noqa: UP045 - None | None
        if name == "Union" and given:
            return Union[tuple(given)]  # noqa: UP007 - made at run time
    raise _malformed(
        f"the type {text[:100]!a} is not one of str, int, float, bool, list, dict[str, ...], Literal, "
        "Optional, Union, Any"
    )


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, int)) and not isinstance(node.value, bool)


def _malformed(text: str) -> BridgeError:
    return BridgeError(Kind.VALIDATION, f"the signature is malformed: {text}", code="signature", field="signature")


def _input(name: str, code: str, text: str) -> BridgeError:
    return BridgeError(Kind.VALIDATION, text, code=code, field=f"input.{name}"[:200])
