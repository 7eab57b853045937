"""Constants of GraphPipe's wire formats, on raw sockets and over HTTP; `invoker.tensors` encodes the buffers."""

from __future__ import annotations

import struct
from typing import Final

LENGTH: Final = struct.Struct("<I")
"""The length before each buffer on a raw socket, in both directions (D4, G-016)."""

NAMED: Final = 1 << 31
"""The bit of a length that marks the name of a model, with which a connection may begin (ADR 16)."""

OCTETS: Final = "application/octet-stream"
"""The Content-Type of buffers over HTTP."""

ERROR_HEADER: Final = "X-GraphPipe-Error"
"""The header of an HTTP response whose buffer has errors; its value is the code of the first error."""
