"""Settings of an author for one kind of protocol only. No other protocol reads them, so the specs have no field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["HttpTraits", "ModelTraits", "NodeTraits", "ToolTraits", "Traits"]


@dataclass(frozen=True, slots=True)
class HttpTraits:
    """Settings of a function that is served over HTTP.

    Attributes:
        safe: Calling it changes nothing, so that GET may call it.
    """

    safe: bool = False


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """Settings of a function that a protocol serves as a model of tensors.

    Attributes:
        rows: Where a request is a batch, its rows are the values of the function, one by one.
        batch_max: Rows up to which requests that come at the same time are joined; 1 joins none.
        batch_wait_ms: How long the first of them waits for others, in milliseconds.
        casting: ``"same_kind"`` where arrays of other types become those that are declared, if numpy's rule allows.
        version: As the author says it; may be empty.
    """

    rows: bool = False
    batch_max: int = 1
    batch_wait_ms: float = 5.0
    casting: str = "no"
    version: str = ""


@dataclass(frozen=True, slots=True)
class NodeTraits:
    """Settings of an output whose values a protocol stores as nodes.

    Attributes:
        sequence: Each value is an item of its own, never a piece of one text.
        retain: What the output has given may be used again later.
    """

    sequence: bool = False
    retain: bool = True


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """Settings of a function that a protocol shows as a tool.

    Attributes:
        batch: It works through many values in one call.
        tools: Names of the functions and tools that it calls.
        examples: Of calls.
        cacheable: The same arguments give the same result; callers of tools are told so.
    """

    batch: bool = False
    tools: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    cacheable: bool = False


class Traits(dict[type, Any]):
    """Settings by their class; a class of which the author set nothing gives its defaults."""

    def __missing__(self, kind: type) -> Any:
        return kind()
