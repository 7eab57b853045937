"""The GraphPipe chapters of the conformance suite: tensors over HTTP and raw sockets.

``python -m invoker_conformance --protocol graphpipe --http HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the models that must be served, and ``docs/reference/graphpipe.md`` describes the requirements.
"""

__all__: list[str] = []
