"""The Evergreen chapters of the conformance suite: sessions of fragments and actions.

``python -m invoker_conformance --protocol evergreen --target HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the actions that they call, ``docs/reference/evergreen.md`` the requirements.
"""

__all__: list[str] = []
