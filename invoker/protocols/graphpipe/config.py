"""`RequestConfig`: the config of a request, which its function finds in ``ctx.configs`` (G-031)."""

from __future__ import annotations

from typing import Any

import msgspec

from invoker.codecs.exponents import json_value
from invoker.protocols.graphpipe.errors import ConfigRefused


class RequestConfig:
    """The bytes of a config. A function gets them as bytes, as text if they are UTF-8, or as a dict if they are JSON.

    Attributes:
        value: The value as it came.
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
        """The config, read as a JSON object.

        Raises:
            ConfigRefused: The config is no JSON object (E17), which counts as the caller's fault if the function does
                not catch it.
        """
        try:
            return msgspec.convert(json_value(self.value), dict[str, Any])
        except (ValueError, RecursionError) as error:
            raise ConfigRefused(f"the config is not a JSON object: {error}") from None

    def __repr__(self) -> str:
        return f"Config({len(self.value)} bytes)"  # G-106: it may hold secrets
