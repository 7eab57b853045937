"""The tool bridge chapters of the conformance suite: sessions, tools and variables.

``python -m invoker_conformance --protocol toolbridge --target HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the tools that they call, ``docs/reference/tool-bridge.md`` the requirements.
"""

__all__: list[str] = []
