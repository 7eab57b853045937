"""The tool bridge chapters of the conformance suite: sessions, tools and variables, judged from outside.

``python -m invoker_conformance --protocol toolbridge --target HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the tools that they call, ``docs/reference/tool-bridge.md`` the requirements.
"""

from __future__ import annotations

from invoker_conformance.toolbridge import (  # noqa: F401  # importing a chapter registers its scenarios
    scenarios_arguments,
    scenarios_calls,
    scenarios_service,
    scenarios_sessions,
    scenarios_streams,
    scenarios_tools,
    scenarios_values,
    scenarios_variables,
)

__all__: list[str] = []
