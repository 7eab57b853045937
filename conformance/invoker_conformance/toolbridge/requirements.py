"""The requirements of the tool bridge that a report cites, and which of them no outsider can judge.

Their table, ``requirements.tsv``, is made by ``make docs`` from ``docs/reference/tool-bridge.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import table_of

__all__ = ["REQUIREMENTS"]

_INSIDE = "needs a view inside the process"
_CLIENT = "what a client does, or has to bear"
_START = "needs the target's start or end to be watched"
_TIME = "takes minutes of waiting"
_LOG = "what the target writes into its log"
_AGENTS = "needs a language model that the suite scripts"
_HOST = "needs the suite to serve tools of its own"

_UNJUDGED = {
    "T-007": _TIME,
    "T-008": _TIME,
    "T-011": _TIME,
    "T-012": "takes 10 000 sessions",
    "T-034": _START,
    "T-035": _INSIDE,
    "T-039": _INSIDE,
    "T-049": _INSIDE,
    "T-060": "an operator chooses it",
    "T-066": "needs an error class of the target",
    "T-068": _CLIENT,
    "T-074": "an option of the target's functions",
    "T-079": _CLIENT,
    "T-084": "needs a class of the target",
    "T-086": _INSIDE,
    "T-087": _TIME,
    "T-094": _TIME,
    "T-108": "needs pandas on both sides",
    "T-114": "needs numpy in the target",
    **{f"T-{n}": _AGENTS for n in range(133, 150)},
    "T-153": _START,
    "T-158": _INSIDE,
    "T-162": _CLIENT,
    "T-163": _TIME,
    "T-164": _START,
    "T-165": _START,
    "T-166": _START,
    "T-167": _LOG,
    "T-168": _LOG,
    **{f"T-{n}": _HOST for n in range(169, 176)},
    "T-176": _START,
    "T-177": _INSIDE,
}

REQUIREMENTS = table_of(__package__, _UNJUDGED)
"""Every requirement of the catalogue by its id, in its order."""
