"""Reasons are labels of metrics: few, stable, and told apart."""

from __future__ import annotations

import re

from invoker.protocols.federated.secagg.events import Drop, Reason


def test_reasons_can_be_labels_and_no_two_are_the_same() -> None:
    """An enum makes an alias of a value that occurs twice, and such a reason would be lost in the metrics."""
    for kind in (Drop, Reason):
        assert len(kind.__members__) == len(list(kind))
        assert all(re.fullmatch(r"[a-z_]+", reason.value) for reason in kind)
