"""The requirements of the Evergreen handler that a report cites, and which of them no outsider can judge.

Their table, ``requirements.tsv``, is made by ``make docs`` from ``docs/reference/evergreen.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import table_of

__all__ = ["REQUIREMENTS"]

_INSIDE = "needs a view inside the process"
_AUTHOR = "how an author writes a function in one language"
_OPTION = "needs the target started with another configuration"

_UNJUDGED = {
    "E-003": _INSIDE,
    "E-055": _OPTION,
    "E-105": "nothing on the wire to judge",
    "E-127": _INSIDE,
    "E-129": _AUTHOR,
}

REQUIREMENTS = table_of(__package__, _UNJUDGED)
"""Every requirement of the catalogue by its id, in its order."""
