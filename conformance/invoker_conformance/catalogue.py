"""Every requirement of every protocol by its id."""

from __future__ import annotations

from invoker_conformance.evergreen.requirements import REQUIREMENTS as EVERGREEN
from invoker_conformance.federated.requirements import REQUIREMENTS as FEDERATED
from invoker_conformance.graphpipe.requirements import REQUIREMENTS as GRAPHPIPE
from invoker_conformance.riff.requirements import REQUIREMENTS as RIFF
from invoker_conformance.toolbridge.requirements import REQUIREMENTS as TOOLBRIDGE

__all__ = ["ALL", "BY_PROTOCOL"]

BY_PROTOCOL = {
    "riff": RIFF,
    "evergreen": EVERGREEN,
    "graphpipe": GRAPHPIPE,
    "toolbridge": TOOLBRIDGE,
    "federated": FEDERATED,
}
ALL = RIFF | EVERGREEN | GRAPHPIPE | TOOLBRIDGE | FEDERATED
