"""`ToolError`: a function chooses how it fails as a tool."""

from __future__ import annotations

import pytest

from invoker.errors import Status
from invoker.protocols.toolbridge.toolerror import KINDS, ToolError


@pytest.mark.parametrize("kind", list(KINDS))
def test_T066_a_function_chooses_among_six_kinds(kind):
    """The status for callers of other protocols follows from it; details become text."""
    error = ToolError(kind, "no", {"limit": 5})
    assert (error.kind, error.status, str(error), error.details) == (kind, KINDS[kind], "no", {"limit": "5"})


def test_T066_any_other_kind_is_an_internal_error():
    """What it was stands in the details."""
    error = ToolError("Odd", "no")
    assert (error.kind, error.status) == ("InternalError", Status.INTERNAL)
    assert error.details == {"original_type": "Odd"}
