"""`RequestConfig`: the config of a request; the function reads it from ``ctx.configs`` (G-031)."""

from __future__ import annotations

from typing import Any

import msgspec

from invoker.codecs.exponents import json_value
from invoker.protocols.graphpipe.errors import ConfigRefused


class RequestConfig:
    """The bytes of a config; a function reads them as bytes, as text in UTF-8, or as JSON.

    Attributes:
        value: The bytes as they came.
    """

    __slots__ = ("value",)

    def __init__(self, value: bytes) -> None:
        self.value = value

    def unpack(self, kind: type[Any]) -> Any:
        """The config as ``bytes`` or ``str``. None for other classes, and for ``str`` if the bytes are not UTF-8."""
        if kind is bytes:
            return self.value
        if kind is str:
            try:
                return self.value.decode()
            except UnicodeDecodeError:
                return None
        return None

    def to_dict(self) -> dict[str, Any]:
        """Decode the config as a JSON object.

        Raises:
            ConfigRefused: The config is not a JSON object (E17). If the function does not catch this, the caller gets
                the error.
        """
        try:
            return msgspec.convert(json_value(self.value), dict[str, Any])
        except (ValueError, RecursionError) as error:
            raise ConfigRefused(f"the config is not a JSON object: {error}") from None

    def __repr__(self) -> str:
        return f"Config({len(self.value)} bytes)"  # G-106: the config may contain secrets
