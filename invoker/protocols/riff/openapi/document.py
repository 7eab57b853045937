"""`openapi`: the whole document, of OpenAPI 3.1.

Each function has a path with POST, and with GET if it is safe. What a request may look like follows from the same
signature by which requests are bound (R-169), so a client that is made from the document is understood. The paths are
relative to where the document is, since the door may be mounted below another application.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

from invoker.author.docstrings import read_prose
from invoker.author.spec import FunctionSpec
from invoker.author.traits import ModelTraits
from invoker.body.described import Described
from invoker.codecs.schema import Schemas
from invoker.protocols.riff.fields import Signature
from invoker.protocols.riff.openapi.process import PROCESS, PROCESS_TAG
from invoker.protocols.riff.openapi.requests import Requests
from invoker.protocols.riff.openapi.responses import Replies, error_responses

__all__ = ["DIALECT", "openapi", "path_of", "version_of"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SCHEMAS: Final = "#/components/schemas/"
_VERSION: Final = "3.1.0"
_TAG: Final = "functions"


def openapi(
    functions: Iterable[tuple[Described, Signature]],
    *,
    version: str,
    title: str = "invoker",
) -> dict[str, Any]:
    """The document.

    Args:
        functions: Each as callers are told of it, and as requests are bound to it.
        version: Of what is described.
        title: For readers.
    """
    schemas = Schemas(_SCHEMAS)
    replies = Replies(schemas)
    paths: dict[str, Any] = {}
    names = {one["get"]["operationId"] for one in PROCESS.values()}
    for function, signature in functions:
        path = path_of(function.name)
        if path not in PROCESS:  # the process answers there
            paths[path] = _path(function, signature, schemas, replies, names)
    return {
        "openapi": _VERSION,
        "info": {"title": title, "version": version},
        "jsonSchemaDialect": DIALECT,
        "servers": [{"url": "."}],
        "tags": [{"name": _TAG, "description": "What is served."}, PROCESS_TAG],
        "paths": {**paths, **PROCESS},
        "components": {"schemas": schemas.definitions, "responses": error_responses(replies)},
    }


def path_of(name: str) -> str:
    """The path of a function, as URLs have it."""
    return f"/{quote(name, safe='')}"


def version_of(specs: Iterable[FunctionSpec]) -> str:
    """The version of the functions that their author has said, if it is the same for all; else 0."""
    said = {one.traits[ModelTraits].version for one in specs}
    return (said.pop() if len(said) == 1 else "") or "0"


def _path(
    function: Described, signature: Signature, schemas: Schemas, replies: Replies, names: set[str]
) -> dict[str, Any]:
    name = _named(function.name, names)
    requests = Requests(function, signature, name, schemas)
    responses = replies.responses(function)
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
    """An identifier of its own, as clients make functions of them."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "function"
    own, count = plain, 1
    while own in names:
        count += 1
        own = f"{plain}_{count}"
    names.add(own)
    return own
