"""Describes the paths of the process itself, which every HTTP transport serves."""

from __future__ import annotations

from typing import Any, Final

PROCESS_TAG: Final = {"name": "process", "description": "The state of the process, and its functions."}

_TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}


def _read(name: str, summary: str, responses: dict[str, Any]) -> dict[str, Any]:
    return {"get": {"operationId": name, "tags": ["process"], "summary": summary, "responses": responses}}


PROCESS: Final[dict[str, Any]] = {
    "/functions": _read(
        "list_functions",
        "List the functions, with types and media types.",
        {
            "200": {"description": "The list.", "content": {"application/json": {"schema": {"type": "object"}}}},
            "304": {"description": "The list is the one whose ETag is in `If-None-Match`."},
        },
    ),
    "/livez": _read("is_live", "Whether the process answers.", {"200": {"description": "Yes.", "content": _TEXT}}),
    "/readyz": _read(
        "is_ready",
        "Whether the process should get traffic.",
        {"200": {"description": "Yes.", "content": _TEXT}, "503": {"description": "No.", "content": _TEXT}},
    ),
    "/metrics": _read(
        "read_metrics", "Read the metrics.", {"200": {"description": "Text for Prometheus.", "content": _TEXT}}
    ),
}
"""Operations by path."""
