"""The conformance suite: judges invokers in any language from outside, in each of the protocols of `PROTOCOLS`.

``python -m invoker.conformance --target HOST:PORT`` calls a small set of named functions that the target serves, and
reports by requirement id. ``docs/reference/conformance.md`` describes them.
"""

from __future__ import annotations

from invoker.conformance import (  # noqa: F401  # their chapters register scenarios
    evergreen,
    federated,
    graphpipe,
    riff,
    toolbridge,
)
from invoker.conformance.cli import add_arguments, main, run, select
from invoker.conformance.report import Report
from invoker.conformance.scenario import SCENARIOS, Failure, NotProvided, Scenario, scenario

__all__ = [
    "SCENARIOS",
    "Failure",
    "NotProvided",
    "Report",
    "Scenario",
    "add_arguments",
    "main",
    "run",
    "scenario",
    "select",
]
