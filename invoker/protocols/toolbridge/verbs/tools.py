"""``python -m invoker inspect --tools``: shows the functions as tools of the tool bridge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.author.docstrings import read_docstring
from invoker.author.spec import FunctionSpec
from invoker.codecs.anyvalue import unpack
from invoker.protocols.toolbridge.tools import Tools


def listed(functions: Sequence[FunctionSpec]) -> tuple[list[dict[str, Any]], str]:
    """The tools as JSON data, and as text.

    Raises:
        SpecError: A function cannot be a tool.
    """
    return described_tools(functions), tools_text(functions)


def described_tools(functions: Iterable[FunctionSpec]) -> list[dict[str, Any]]:
    """The tools as JSON data, sorted by name; the fields are those of a ToolSpec.

    Raises:
        SpecError: A function cannot be a tool.
    """
    return [_tool(one) for one in Tools(functions).specs]


def tools_text(functions: Iterable[FunctionSpec]) -> str:
    """The tools as text.

    Raises:
        SpecError: A function cannot be a tool.
    """
    specs = {one.name: one for one in functions}
    return "\n\n".join("\n".join(_lines(one, specs[one["name"]])) for one in described_tools(specs.values()))


def _tool(spec: pb.ToolSpec) -> dict[str, Any]:
    limits = {field.name: value for field, value in spec.limits.ListFields()}
    return {
        "tool_id": spec.tool_id,
        "name": spec.name,
        "description": spec.description,
        "type": pb.ToolType.Name(spec.type),
        "arguments": [_argument(one) for one in spec.arguments],
        "return_type": _argument(spec.return_type),
        "metadata": dict(spec.metadata),
        "examples": list(spec.examples),
        "validation": _rules(spec.validation),
        "limits": limits,
    }


def _argument(spec: pb.ArgumentSpec) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": spec.name,
        "python_type": spec.python_type,
        "elixir_type": spec.elixir_type,
        "description": spec.description,
    }
    if spec.name != "return":
        made["required"] = spec.required
    if spec.HasField("default_value"):
        value = unpack(spec.default_value.SerializeToString())
        made["default_value"] = (
            value if isinstance(value, (str, int, float, bool, list, dict, type(None))) else str(value)
        )
    if spec.allowed_values:
        made["allowed_values"] = list(spec.allowed_values)
    if spec.HasField("validation"):
        made["validation"] = _rules(spec.validation)
    return made


def _rules(rules: pb.ValidationRules) -> dict[str, Any]:
    return {field.name: list(value) if field.name == "custom_rules" else value for field, value in rules.ListFields()}


def _lines(tool: dict[str, Any], spec: FunctionSpec) -> Iterable[str]:
    """The lines of a tool: its title, its description, each argument, the result and the limits."""
    where = f"  ({tool['tool_id']})" if tool["tool_id"] != tool["name"] else ""
    yield f"{tool['name']}{where}  {tool['type'].lower()}"
    if tool["description"]:
        yield f"  {tool['description']}"
    rows = [(one["name"], _said(one)) for one in tool["arguments"]]
    rows += _open(spec)
    rows.append(("gives", _said(tool["return_type"] | {"validation": tool["validation"]})))
    if tool["limits"]:
        rows.append(("limits", "; ".join(_limit(name, value) for name, value in tool["limits"].items())))
    rows += [(name, value) for name, value in tool["metadata"].items()]
    rows += [("example", one.replace("\n", " ")) for one in tool["examples"]]
    width = max(len(name) for name, _ in rows)
    yield from (f"  {name.ljust(width)}  {text}" for name, text in rows)


def _open(spec: FunctionSpec) -> Iterable[tuple[str, str]]:
    """Describe ``*args`` and ``**kwargs``, which a ToolSpec cannot represent."""
    words = read_docstring(spec.doc).arguments
    for one in spec.call.parameters:
        if one.is_variadic and (spec.open_names if one.by_keyword else spec.open_inputs):
            text = "any further arguments by name" if one.by_keyword else "any number of further arguments by position"
            yield "**" if one.by_keyword else "*", f"{text}: {words[one.name]}" if one.name in words else text


def _said(one: dict[str, Any]) -> str:
    parts = [f"{one['python_type']} ({one['elixir_type']})"]
    if one.get("required"):
        parts.append("required")
    if "default_value" in one:
        parts.append(f"default {json.dumps(one['default_value'])}")
    if "allowed_values" in one:
        parts.append(f"one of {', '.join(one['allowed_values'])}")
    parts += _rules_said(one.get("validation", {}))
    return ", ".join(parts) + (f": {one['description']}" if one["description"] else "")


def _rules_said(rules: dict[str, Any]) -> Sequence[str]:
    said = [_between(rules.get("min_value"), rules.get("max_value"), "")]
    said.append(_between(rules.get("min_length"), rules.get("max_length"), " long"))
    if "pattern" in rules:
        said.append(f"matches {rules['pattern']}")
    if "custom_rules" in rules:
        said.append(f"follows {', '.join(rules['custom_rules'])}")
    return [one for one in said if one]


def _between(low: float | None, high: float | None, unit: str) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f"at least {low:.15g}{unit}"
    return f"at most {high:.15g}{unit}" if low is None else f"{low:.15g} to {high:.15g}{unit}"


def _limit(name: str, value: int) -> str:
    return {
        "timeout_ms": f"{value / 1000:g} s",
        "max_memory_bytes": f"{value} bytes of memory",
        "max_concurrent_calls": f"{value} calls at once",
        "rate_limit_per_minute": f"{value} calls a minute",
    }[name]
