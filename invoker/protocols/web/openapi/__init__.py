"""The HTTP API as an OpenAPI document: a path for each function, and what its requests and responses are."""

from invoker.protocols.web.openapi.document import DIALECT, Document, path_of

__all__ = ["DIALECT", "Document", "path_of"]
