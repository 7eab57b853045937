"""`ToolError`: a function that is called as a tool raises it to choose the kind of error that its caller gets."""

from __future__ import annotations

from collections.abc import Mapping

from invoker.errors import Status, StatusError
from invoker.protocols.toolbridge.wire import KINDS


class ToolError(StatusError):
    """Raised by a function to choose the kind, the text and the details of the error that the caller of the tool gets.

    Callers of other protocols get the status of the kind, and the text.

    Args:
        kind: One of `KINDS`. Any other becomes ``InternalError``, with the detail ``original_type`` (T-066).
        message: What was met, and what was expected.
        details: Further facts by name; values become text.
    """

    def __init__(self, kind: str, message: str = "", details: Mapping[str, object] | None = None) -> None:
        super().__init__(KINDS.get(kind, Status.INTERNAL), message)
        self.kind = kind if kind in KINDS else "InternalError"
        self.details = {name: str(value) for name, value in (details or {}).items()}
        if kind not in KINDS:
            self.details["original_type"] = str(kind)
