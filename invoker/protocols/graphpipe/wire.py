"""GraphPipe's wire around its buffers, which `invoker.tensors` reads and writes: frames of bare sockets, and HTTP."""

from __future__ import annotations

import struct
from typing import Final

LENGTH: Final = struct.Struct("<I")
"""Stands before each buffer on a bare socket, in both directions (D4, G-016)."""

NAMED: Final = 1 << 31
"""The bit of a length that says that a model's name follows; a connection may begin with one (ADR 16)."""

OCTETS: Final = "application/octet-stream"
"""The Content-Type of buffers over HTTP."""

ERROR_HEADER: Final = "X-GraphPipe-Error"
"""The header of an HTTP response whose buffer has errors; its value is the code of the first."""
