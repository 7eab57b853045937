"""The GraphPipe chapters of the conformance suite: tensors over HTTP and raw sockets.

``python -m invoker_conformance --protocol graphpipe --http HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the models that they ask, ``docs/reference/graphpipe.md`` the requirements.
"""

__all__: list[str] = []
