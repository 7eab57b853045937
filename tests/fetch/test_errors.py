"""`invoker.fetch.errors`: refused and failed references."""

from __future__ import annotations

from invoker.errors import InvocationError, Status
from invoker.fetch.errors import ReferenceFailed, ReferenceRefused


def test_E057_a_missing_reference_is_not_found():
    """One that cannot be reached is unavailable."""
    assert ReferenceFailed("x", is_missing=True).status is Status.NOT_FOUND
    assert ReferenceFailed("x").status is Status.UNAVAILABLE


def test_E058_a_refused_reference_is_a_matter_of_permission():
    """An invocation fails with it; its text has the detail."""
    error = ReferenceRefused("not here")
    assert isinstance(error, InvocationError)
    assert (error.status, str(error)) == (Status.PERMISSION_DENIED, "Invoker: Reference Refused: not here")
