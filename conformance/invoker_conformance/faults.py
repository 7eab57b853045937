"""`Fault`: an expected status; and the rules for the text of a status."""

from __future__ import annotations

import re
from dataclasses import dataclass

import grpc

LEAKS = re.compile(r"Traceback|Unexpected <class|File \"|\.py\b|site-packages")
"""A pattern of texts that reveal the inside of a server; no error may match it."""

CONCRETE = re.compile(r"[\w!#$%&'+.^`|~-]+/[\w!#$%&'+.^`|~-]+(\s*;.*)?", re.ASCII)
"""A pattern of media types that are not ranges, with or without parameters."""

DETAIL_BYTES = 4096
"""The largest size of the text of a status, in bytes on the wire."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An expected status: the code, the beginning of the message, and an alternative code."""

    code: grpc.StatusCode
    prefix: str
    other: grpc.StatusCode | None = None

    def matches(self, code: grpc.StatusCode, message: str) -> bool:
        """Whether a status is this fault; after the prefix there must be a colon or the end."""
        return code in (self.code, self.other) and (message == self.prefix or message.startswith(f"{self.prefix}: "))

    def __str__(self) -> str:
        codes = " or ".join(code.name for code in (self.code, self.other) if code is not None)
        return f"{codes} {self.prefix!r}"


def encoded_size(detail: str) -> int:
    """The size of a status message in bytes on the wire, where gRPC percent-encodes all but printable ASCII."""
    return sum(1 if 0x20 <= byte <= 0x7E and byte != 0x25 else 3 for byte in detail.encode())
