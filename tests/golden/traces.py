"""Where the traces lie, and how they are made and compared."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from unittest import mock

from invoker.protocols.toolbridge import execute
from tests.golden.recorder import Scenario, Trace
from tests.golden.stillness import still

PROTOCOLS = ("action_engine", "evergreen", "federated", "graphpipe", "riff", "toolbridge", "typed", "web")
"""Each has a module of scenarios, and a file of traces."""

_DATA = Path(__file__).parent / "data"
_MOST_LINES = 60


def file_of(protocol: str) -> Path:
    """The recorded traces of a protocol."""
    return _DATA / f"{protocol}.txt"


def record(protocol: str) -> str:
    """Play all scenarios of a protocol, and give their traces."""
    module = import_module(f"tests.golden.scenarios.{protocol}")
    scenarios: Mapping[str, Scenario] = module.scenarios()
    made: list[str] = []
    with mock.patch.object(execute, "_NUMBERS", count()):  # other tests of this process have counted, too
        for name, scenario in scenarios.items():
            trace = Trace()
            with still():
                scenario(trace)
            made += [f"[{name}]", *trace.lines, ""]
    return "\n".join(made)


def difference(recorded: str, played: str) -> str:
    """What differs, with the scenarios that it belongs to; empty: nothing does."""
    old, new = (_scenarios(one) for one in (recorded, played))
    lines: list[str] = []
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name, []), new.get(name, [])
        if before != after:
            lines += [
                f"[{name}]",
                *list(difflib.unified_diff(before, after, "recorded", "played", n=2, lineterm=""))[2:],
            ]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"and {len(lines) - _MOST_LINES} lines more"]
    return "\n".join(lines)


def _scenarios(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("["):
            lines = found.setdefault(line[1:-1], [])
        elif line:
            lines.append(line)
    return found
