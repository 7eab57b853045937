"""The requirements of the riff invoker that a report cites, and which of them no outsider can judge.

Their table, ``requirements.tsv``, is made by ``make docs`` from ``docs/reference/riff.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import table_of

__all__ = ["REQUIREMENTS"]

_PROCESS = "the process and its environment: start-up, ports, exit codes"
_HOOKS = "hooks and signals of the process"
_INSIDE = "needs a view inside the process"
_AUTHOR = "how an author writes a function in one language"
_OPTION = "needs the target started with another configuration"

_UNJUDGED: dict[str, str] = {
    **{f"R-{n:03}": _PROCESS for n in (*range(1, 7), 8, 9, 10, 14, 16, 140)},
    **{f"R-{n:03}": _HOOKS for n in range(17, 29)},
    "R-011": _INSIDE,
    "R-035": _AUTHOR,
    "R-040": _AUTHOR,
    "R-043": _AUTHOR,
    "R-044": _AUTHOR,
    "R-056": _AUTHOR,
    "R-069": _OPTION,
    "R-071": _AUTHOR,
    "R-132": _OPTION,
    "R-171": _AUTHOR,
    "R-158": "not offered: functions are loaded at start",
}

REQUIREMENTS = table_of(__package__, _UNJUDGED)
"""Every requirement of the catalogue by its id, in its order."""
