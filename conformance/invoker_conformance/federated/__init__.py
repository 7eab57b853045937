"""The federated chapters of the conformance suite: devices that take part in rounds, some of which misbehave.

``python -m invoker_conformance --protocol federated --target HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the populations that they need, ``docs/reference/federated.md`` the requirements.
"""

__all__: list[str] = []
