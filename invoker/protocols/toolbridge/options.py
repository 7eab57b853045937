"""The options of `@function` that only the tool bridge understands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from invoker.author.protocoloptions import ProtocolOption
from invoker.errors import SpecError


@dataclass(frozen=True, slots=True)
class ToolInfo(ProtocolOption):
    """Describes the function as a tool, for callers.

    Attributes:
        batch: Whether the function processes many values in one call.
        tools: Names of the functions and tools that it calls through its context.
        cacheable: Whether the same arguments always give the same result, so that callers may cache it.

    Raises:
        SpecError: A value is of another type.
    """

    protocol: ClassVar[str] = "toolbridge"
    batch: bool = False
    tools: Iterable[str] = ()
    cacheable: bool = False

    def __post_init__(self) -> None:
        for field in ("batch", "cacheable"):
            value = getattr(self, field)
            if not isinstance(value, bool):
                raise SpecError(f"toolbridge.ToolInfo({field}={value!r}) must be True or False")
        object.__setattr__(self, "tools", _names(self.tools))


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, Iterable):
        raise SpecError(f"toolbridge.ToolInfo(tools={value!r}) must be names of tools")
    names = (value,) if isinstance(value, str) else tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise SpecError(f"toolbridge.ToolInfo(tools=...) takes names; {name!r} is a {type(name).__name__}")
    return names
