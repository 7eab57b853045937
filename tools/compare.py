"""Finds figures that got worse: more calls, files, modules, time, long functions or loaded libraries, or less
coverage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MORE_IS_BETTER = ("coverage",)
_TOLD_ONLY = ("python", "size.rooms", "size.longest", "size.such functions", "wall_ms")
# These vary on a busy machine: a call takes another path if its thread is late or a cache is cold.
_SLACK = {"calls": (0.1, 2.0), "files": (0.1, 1.0), "ms": (0.3, 30.0), "coverage": (0.0, 0.1)}


def worse(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return a sentence for each figure that got worse; figures that are only in one of the two are ignored.

    Args:
        before: The recorded figures.
        now: The figures of this tree.
    """
    then = dict(_flat(before))
    return [
        sentence
        for name, value in _flat(now)
        if name in then and not _is_told_only(name) and (sentence := _judged(name, then[name], value))
    ]


def _judged(name: str, before: Any, now: Any) -> str:
    if isinstance(now, list):
        more = [str(one) for one in now if one not in before]
        return f"{name}: {', '.join(more)} was not loaded before" if more else ""
    part, least = next((slack for key, slack in _SLACK.items() if key in name.split(".")), (0.0, 0.0))
    grown = before - now if name.partition(".")[0] in _MORE_IS_BETTER else now - before
    return f"{name}: {now} where {before} is recorded" if grown > max(before * part, least) else ""


def _is_told_only(name: str) -> bool:
    return name.startswith(_TOLD_ONLY) or name.endswith(_TOLD_ONLY)


def _flat(figures: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
