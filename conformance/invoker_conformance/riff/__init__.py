"""The riff chapters of the conformance suite: calls over gRPC, and requests over HTTP.

``docs/reference/conformance.md`` describes the functions that they call, ``docs/reference/riff.md`` the requirements.
"""

__all__: list[str] = []
