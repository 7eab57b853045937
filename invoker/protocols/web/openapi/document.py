"""`Document`: the whole document, of OpenAPI 3.1.

Each function has a path with POST, and with GET if it is safe. Requests are described from the same signature by which
they are bound (R-169), so a generated client sends valid requests. The paths are relative to the URL of the document,
since the transport may be mounted below another application.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from invoker.author.described import Described
from invoker.author.docstrings import read_prose
from invoker.codecs.schema import Schemas
from invoker.protocols.web.fields import Signature
from invoker.protocols.web.openapi.process import PROCESS, PROCESS_TAG
from invoker.protocols.web.openapi.requests import Requests
from invoker.protocols.web.openapi.responses import Replies, error_responses

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SCHEMAS: Final = "#/components/schemas/"
_VERSION: Final = "3.1.0"
_TAG: Final = "functions"


class Document:
    """Builds an OpenAPI document function by function."""

    def __init__(self) -> None:
        self._schemas = Schemas(_SCHEMAS)
        self._replies = Replies(self._schemas)
        self._paths: dict[str, Any] = {}
        self._names = {one["get"]["operationId"] for one in PROCESS.values()}
        self._versions: set[str] = set()

    def add(self, function: Described, signature: Signature) -> None:
        """Add the path of a function, unless the path belongs to the process itself, such as ``/functions``.

        Args:
            function: The description of the function for callers.
            signature: The signature to which requests are bound.
        """
        path = path_of(function.name)
        if path not in PROCESS:
            self._paths[path] = _path(function, signature, self._schemas, self._replies, self._names)
            self._versions.add(function.spec.version)

    def finished(self) -> dict[str, Any]:
        """The whole document.

        Its version is the one that the authors gave, if it is the same for all functions; otherwise 0.
        """
        version = next(iter(self._versions)) if len(self._versions) == 1 else ""
        return {
            "openapi": _VERSION,
            "info": {"title": "invoker", "version": version or "0"},
            "jsonSchemaDialect": DIALECT,
            "servers": [{"url": "."}],
            "tags": [{"name": _TAG, "description": "What is served."}, PROCESS_TAG],
            "paths": {**self._paths, **PROCESS},
            "components": {"schemas": self._schemas.definitions, "responses": error_responses(self._replies)},
        }


def path_of(name: str) -> str:
    """The path of a function in a URL, percent-encoded."""
    return f"/{quote(name, safe='')}"


def _path(
    function: Described, signature: Signature, schemas: Schemas, replies: Replies, names: set[str]
) -> dict[str, Any]:
    name = _named(function.name, names)
    requests = Requests(function, signature, name, schemas)
    responses = replies.responses(function, signature.pieces)
    made = {}
    if function.is_safe:
        operation = _operation(function, _named(f"get_{name}", names))
        if parameters := requests.parameters(is_body=False):
            operation["parameters"] = parameters
        made["get"] = {**operation, "responses": responses}
    operation = _operation(function, name)
    if parameters := requests.parameters(is_body=True):
        operation["parameters"] = parameters
    if (body := requests.body()) is not None:
        operation["requestBody"] = body
    made["post"] = {**operation, "responses": responses}
    return made


def _operation(function: Described, name: str) -> dict[str, Any]:
    prose = read_prose(function.spec.doc)
    made: dict[str, Any] = {"operationId": name, "tags": [_TAG]}
    if function.docs.summary:
        made["summary"] = function.docs.summary
    if prose and prose != function.docs.summary:
        made["description"] = prose
    return made


def _named(name: str, names: set[str]) -> str:
    """Make a unique identifier from a name; generators of clients make function names from it."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "function"
    own, count = plain, 1
    while own in names:
        count += 1
        own = f"{plain}_{count}"
    names.add(own)
    return own
