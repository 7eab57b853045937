"""The conformance suite: judges invokers in any language from outside: riff, Evergreen, GraphPipe, tool bridge.

``python -m invoker.conformance --target HOST:PORT`` calls a small set of named functions that the target serves, and
reports by requirement id. ``docs/reference/conformance.md`` describes them.
"""

from __future__ import annotations

from invoker.conformance import evergreen, graphpipe, riff, toolbridge  # noqa: F401  # their chapters register scenarios
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
