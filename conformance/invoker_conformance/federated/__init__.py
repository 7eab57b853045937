"""The federated chapters of the conformance suite: devices that play rounds with a server, some of which misbehave.

``python -m invoker_conformance --protocol federated --target HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the populations that they need, ``docs/reference/federated.md`` the requirements.
"""

from __future__ import annotations

from invoker_conformance.federated import (  # noqa: F401  # importing a chapter registers its scenarios
    scenarios_aggregation,
    scenarios_assignment,
    scenarios_bounds,
    scenarios_chunks,
    scenarios_dropouts,
    scenarios_hostile,
    scenarios_resources,
    scenarios_rounds,
    scenarios_secure,
    scenarios_session,
)

__all__: list[str] = []
