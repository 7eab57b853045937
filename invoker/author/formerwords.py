"""Keywords of `@function` that became options of a protocol: they are understood, with a warning, until 0.2.

This file and its uses in `invoker.author.decorator` will be removed then.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, TypedDict

from invoker.author.protocoloptions import NotInstalled, ProtocolOption

FORMER: Final = {
    "rows": ("graphpipe", "Rows", "by_row"),
    "casting": ("graphpipe", "Casting", "inputs"),
    "output_casting": ("graphpipe", "Casting", "outputs"),
    "sequence": ("evergreen", "Nodes", "sequence"),
    "retain": ("evergreen", "Nodes", "retain"),
    "batch": ("toolbridge", "ToolInfo", "batch"),
    "tools": ("toolbridge", "ToolInfo", "tools"),
    "cacheable": ("toolbridge", "ToolInfo", "cacheable"),
}
"""For each keyword: the protocol, the class of its option, and the field of the option that replaces the keyword."""


class Former(TypedDict, total=False):
    """The types of the former keywords of `@function`."""

    rows: bool
    casting: str
    output_casting: str
    sequence: bool | Iterable[str]
    retain: bool | Iterable[str]
    batch: bool
    tools: Iterable[str]
    cacheable: bool


def translated(said: dict[str, Any], stacklevel: int) -> list[ProtocolOption]:
    """Take the former keywords out of the decorator's keywords, and make the options that have replaced them.

    Args:
        said: Keywords of the decorator; the former ones are removed.
        stacklevel: Selects the line that the warning names, as for `warnings.warn` when it is called here.

    Raises:
        SpecError: A value is invalid for its option.
    """
    words = {word: said.pop(word) for word in FORMER if word in said}
    if not words:
        return []
    fields: dict[tuple[str, str], dict[str, Any]] = {}
    for word, value in words.items():
        protocol, kind, field = FORMER[word]
        fields.setdefault((protocol, kind), {})[field] = value
    made, written = [], []
    for (protocol, kind), values in fields.items():
        written.append(f"{protocol}.{kind}({_arguments(values)})")
        made.append(_made(protocol, kind, values, words))
    others = ", ".join(f"{word}=..." for word in said if word != "options")
    line = f"@function({f'{others}, ' if others else ''}options=[{', '.join(written)}])"
    imported = ", ".join(sorted({protocol for protocol, _ in fields}))
    warnings.warn(
        f"@function({_arguments(words)}) will be removed in invoker 0.2; write {line}, "
        f"and `from invoker.protocols import {imported}`",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
    return made


def _made(protocol: str, kind: str, values: dict[str, Any], words: dict[str, Any]) -> ProtocolOption:
    name = f"invoker.protocols.{protocol}"
    try:
        module = import_module(f"{name}.options")
    except ModuleNotFoundError as error:
        if error.name not in (name, f"{name}.options"):
            raise
        own = {word: value for word, value in words.items() if FORMER[word][:2] == (protocol, kind)}
        return NotInstalled(protocol, _arguments(own))
    option: ProtocolOption = getattr(module, kind)(**values)
    return option


def _arguments(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
