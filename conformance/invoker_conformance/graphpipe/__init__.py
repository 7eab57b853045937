"""The GraphPipe chapters of the conformance suite: tensors over HTTP and bare sockets, judged from outside.

``python -m invoker_conformance --protocol graphpipe --http HOST:PORT`` runs them. ``docs/reference/conformance.md``
describes the models that they ask, ``docs/reference/graphpipe.md`` the requirements.
"""

from __future__ import annotations

from invoker_conformance.graphpipe import (  # noqa: F401  # importing a chapter registers its scenarios
    scenarios_batches,
    scenarios_buffers,
    scenarios_configured,
    scenarios_door,
    scenarios_endings,
    scenarios_limits,
    scenarios_metadata,
    scenarios_names,
    scenarios_schema,
    scenarios_sockets,
    scenarios_tensors,
)

__all__: list[str] = []
