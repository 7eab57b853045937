"""`Tool` and its parts: the description of a tool, as plain Python objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.client.values import read


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that a value must obey; None, an empty text or an empty tuple: no rule.

    Attributes:
        pattern: A regular expression that matches anywhere in the value.
        min_value: The smallest value that is allowed.
        max_value: The largest value that is allowed.
        min_length: The smallest length that is allowed, in code points, bytes or items.
        max_length: The largest length that is allowed, in code points, bytes or items.
        custom: Names of further rules.
    """

    pattern: str = ""
    min_value: float | None = None
    max_value: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    custom: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a tool; 0: the bridge reports no limit."""

    timeout_s: float = 0.0
    memory_bytes: int = 0
    max_calls: int = 0
    calls_per_minute: int = 0


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool, or the result.

    Attributes:
        name: The name of the parameter; ``return`` for a result.
        python_type: The type in Python, such as ``List[str]``.
        elixir_type: The type in Elixir, such as ``[binary]``.
        is_required: Whether it has no default.
        default: The default; None if there is none.
        allowed_values: The allowed values as text; empty: any.
        description: The description from the docstring.
        rules: The rules for its value.
    """

    name: str
    python_type: str
    elixir_type: str
    is_required: bool
    default: Any
    allowed_values: tuple[str, ...]
    description: str
    rules: Rules


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a bridge.

    Attributes:
        id: ``module:qualname``; ``callback:name`` for tools of the host.
        name: The name by which callers usually call the tool.
        kind: ``STANDARD``, ``STREAMING``, ``BATCH`` or ``COMPOSITE``.
        rules: The rules for the result.
    """

    id: str
    name: str
    kind: str
    description: str
    arguments: tuple[Argument, ...]
    result: Argument
    examples: tuple[str, ...]
    metadata: Mapping[str, str]
    rules: Rules
    limits: Limits


def tool_in(spec: pb.ToolSpec) -> Tool:
    """Convert the description of one tool.

    Raises:
        ValueError: A default has an unknown type.
    """
    limits = spec.limits
    return Tool(
        id=spec.tool_id,
        name=spec.name,
        kind=_kind(spec.type),
        description=spec.description,
        arguments=tuple(_argument(one) for one in spec.arguments),
        result=_argument(spec.return_type),
        examples=tuple(spec.examples),
        metadata=dict(spec.metadata),
        rules=_rules(spec.validation),
        limits=Limits(
            limits.timeout_ms / 1000,
            limits.max_memory_bytes,
            limits.max_concurrent_calls,
            limits.rate_limit_per_minute,
        ),
    )


def _kind(number: int) -> str:
    known = number in pb.ToolType.values()
    return pb.ToolType.Name(number) if known else str(number)


def _argument(spec: pb.ArgumentSpec) -> Argument:
    return Argument(
        name=spec.name,
        python_type=spec.python_type,
        elixir_type=spec.elixir_type,
        is_required=spec.required,
        default=read(spec.default_value) if spec.HasField("default_value") else None,
        allowed_values=tuple(spec.allowed_values),
        description=spec.description,
        rules=_rules(spec.validation),
    )


def _rules(rules: pb.ValidationRules) -> Rules:
    return Rules(
        pattern=rules.pattern,
        min_value=rules.min_value if rules.HasField("min_value") else None,
        max_value=rules.max_value if rules.HasField("max_value") else None,
        min_length=rules.min_length if rules.HasField("min_length") else None,
        max_length=rules.max_length if rules.HasField("max_length") else None,
        custom=tuple(rules.custom_rules),
    )
