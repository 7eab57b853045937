"""The HTTP front of riff as an OpenAPI document: a path for each function, and what its requests and responses are."""

from invoker.protocols.riff.openapi.document import DIALECT, openapi, path_of, version_of

__all__ = ["DIALECT", "openapi", "path_of", "version_of"]
