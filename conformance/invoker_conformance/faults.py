"""`Fault`: a status that a target may answer with; and what no text of a status may hold or exceed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import grpc

__all__ = ["DETAIL_BYTES", "LEAKS", "Fault", "encoded_size"]

LEAKS = re.compile(r"Traceback|Unexpected <class|File \"|\.py\b|site-packages")
"""Texts that reveal the inside of a server, which no error may have."""

DETAIL_BYTES = 4096
"""Of a text, as it is encoded on the wire."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the status table: code, the text that the message starts with, and a code that is as good."""

    code: grpc.StatusCode
    prefix: str
    other: grpc.StatusCode | None = None

    def matches(self, code: grpc.StatusCode, message: str) -> bool:
        """Whether a status is this fault; after the prefix comes a colon or nothing."""
        return code in (self.code, self.other) and (message == self.prefix or message.startswith(f"{self.prefix}: "))

    def __str__(self) -> str:
        codes = " or ".join(code.name for code in (self.code, self.other) if code is not None)
        return f"{codes} {self.prefix!r}"


def encoded_size(detail: str) -> int:
    """Bytes of a status message on the wire, where gRPC percent-encodes all but printable ASCII."""
    return sum(1 if 0x20 <= byte <= 0x7E and byte != 0x25 else 3 for byte in detail.encode())
