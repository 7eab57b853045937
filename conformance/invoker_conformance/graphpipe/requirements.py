"""The requirements of the GraphPipe handler that a report cites, and which of them no outsider can judge.

Their table, ``requirements.tsv``, is made by ``make docs`` from ``docs/reference/graphpipe.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import table_of

__all__ = ["REQUIREMENTS"]

_INSIDE = "needs a view inside the process"
_CLIENT = "what a client does, or has to bear"
_END = "needs the target's start or end to be watched"
_LOG = "what the target writes into its log"

_UNJUDGED = {
    **{f"G-{n:03}": _CLIENT for n in (20, 39, 50, 85, 86, 89, 90, 93, 94, 95, 96, 97, 98, 111, 112)},
    "G-014": "takes half a minute of waiting for a body that does not come",
    "G-022": _INSIDE,
    "G-102": _INSIDE,
    "G-103": _INSIDE,
    "G-104": _END,
    "G-105": _LOG,
    "G-106": _LOG,
    "G-107": "what the routes of other fronts answer is theirs",
}

REQUIREMENTS = table_of(__package__, _UNJUDGED)
"""Every requirement of the catalogue by its id, in its order."""
