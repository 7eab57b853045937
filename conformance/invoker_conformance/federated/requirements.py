"""The requirements of federated compute that a report cites, and which of them no outsider can judge.

Their table, ``requirements.tsv``, is made by ``make docs`` from ``docs/reference/federated.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import table_of

__all__ = ["REQUIREMENTS"]

_INSIDE = "needs a view inside the process"
_DEVICE = "what a device does"
_START = "needs the target's start or end to be watched"
_OPERATOR = "an operator chooses it"
_FORM = "the form of checkpoints is the target's own"

_UNJUDGED = {
    "F-037": "cannot be seen from outside",
    "F-049": _START,
    **{f"F-{n:03}": _DEVICE for n in (57, 58, 68, 69, 70, 71, 72, 73, 75, 76, 77, 78)},
    "F-074": "plans are opaque to the protocol",
    "F-083": _START,
    **dict.fromkeys(("F-085", "F-086", "F-087"), _FORM),
    "F-090": _START,
    **{f"F-{n:03}": _DEVICE for n in (95, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112)},
    "F-097": _INSIDE,
    "F-119": _INSIDE,
    "F-131": _INSIDE,
    "F-132": "not offered",
    "F-137": _START,
    "F-139": _OPERATOR,
    "F-140": _INSIDE,
    "F-141": _INSIDE,
    "F-142": _START,
    "F-143": _START,
    "F-144": _DEVICE,
    "F-145": _DEVICE,
}

REQUIREMENTS = table_of(__package__, _UNJUDGED)
"""Every requirement of the catalogue by its id, in its order."""
