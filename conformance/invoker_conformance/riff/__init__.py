"""The riff chapters of the conformance suite: calls over gRPC and requests over HTTP, judged from outside.

``docs/reference/conformance.md`` describes the functions that they call, ``docs/reference/riff.md`` the requirements.
"""

from __future__ import annotations

from invoker_conformance.riff import (  # noqa: F401  # importing a chapter registers its scenarios
    scenarios_accept,
    scenarios_codecs,
    scenarios_endings,
    scenarios_flow,
    scenarios_grammar,
    scenarios_http,
    scenarios_http_wire,
    scenarios_input,
    scenarios_options,
    scenarios_shapes,
    scenarios_wire,
)

__all__: list[str] = []
