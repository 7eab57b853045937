"""The Evergreen chapters of the conformance suite: sessions of fragments and actions, judged from outside.

``python -m invoker_conformance --protocol evergreen --target HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the actions that they call, ``docs/reference/evergreen.md`` the requirements.
"""

from __future__ import annotations

from invoker_conformance.evergreen import (  # noqa: F401  # importing a chapter registers its scenarios
    scenarios_actions,
    scenarios_configured,
    scenarios_endings,
    scenarios_extensions,
    scenarios_fragments,
    scenarios_graph,
    scenarios_limits,
    scenarios_outputs,
    scenarios_partial,
    scenarios_payloads,
    scenarios_random,
    scenarios_references,
    scenarios_session,
    scenarios_talks,
)

__all__: list[str] = []
