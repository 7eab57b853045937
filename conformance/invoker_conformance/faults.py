"""`Fault`: a status that a target may answer with; and what the text of a status must not contain or exceed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import grpc

LEAKS = re.compile(r"Traceback|Unexpected <class|File \"|\.py\b|site-packages")
"""Texts that reveal the inside of a server; no error may contain one."""

CONCRETE = re.compile(r"[\w!#$%&'+.^`|~-]+/[\w!#$%&'+.^`|~-]+(\s*;.*)?", re.ASCII)
"""A media type that is no range, with or without parameters."""

DETAIL_BYTES = 4096
"""The most bytes that the text of a status may have, as it is encoded on the wire."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the status table: code, beginning of the message, and an alternative code."""

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
