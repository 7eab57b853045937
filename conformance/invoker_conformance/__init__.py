"""The conformance suite: tests servers in any language over the network, in each of the protocols of `PROTOCOLS`.

``invoker-conformance --target HOST:PORT`` calls a small set of named functions that the target must serve, and reports
by requirement id. ``docs/reference/conformance.md`` describes the functions.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from invoker_conformance.cli import add_arguments, main, run, select
from invoker_conformance.report import Report
from invoker_conformance.scenario import SCENARIOS, Failure, NotProvided, Scenario, scenario

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

for _module in walk_packages(__path__, f"{__name__}."):
    if ".scenarios_" in _module.name:
        import_module(_module.name)  # the import of a chapter registers its scenarios
