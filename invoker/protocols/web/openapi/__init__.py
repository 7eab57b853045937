"""The OpenAPI document of the HTTP API: a path for each function, with its requests and responses."""

from invoker.protocols.web.openapi.document import DIALECT, Document, path_of

__all__ = ["DIALECT", "Document", "path_of"]
