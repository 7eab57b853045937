"""The status table 0.1 of docs/reference/evergreen.md."""

from __future__ import annotations

import pytest

from invoker import errors as house
from invoker.errors import Status
from invoker.fetch.errors import ReferenceFailed, ReferenceRefused
from invoker.protocols.evergreen import errors
from invoker.protocols.evergreen.errors import EvergreenError, translated

TABLE = [
    ("bad_fragment", Status.INVALID_ARGUMENT, "Evergreen: Invalid Node Fragment"),
    ("bad_graph", Status.INVALID_ARGUMENT, "Evergreen: Invalid Node Graph"),
    ("bad_action", Status.INVALID_ARGUMENT, "Evergreen: Invalid Action"),
    ("not_found", Status.NOT_FOUND, "Evergreen: Action Not Found"),
    ("target_not_found", Status.NOT_FOUND, "Evergreen: Target Not Found"),
    ("bad_input", Status.INVALID_ARGUMENT, "Evergreen: Bad Input"),
    ("incomplete", Status.FAILED_PRECONDITION, "Evergreen: Incomplete Input"),
    ("reference_refused", Status.PERMISSION_DENIED, "Evergreen: Reference Refused"),
    ("reference_failed", Status.UNAVAILABLE, "Evergreen: Reference Failed"),
    ("failed", Status.UNKNOWN, "Evergreen: Action Failed"),
    ("limit", Status.RESOURCE_EXHAUSTED, "Evergreen: Limit Exceeded"),
    ("shutting_down", Status.UNAVAILABLE, "Evergreen: Shutting Down"),
]


@pytest.mark.parametrize(("name", "status", "prefix"), TABLE)
def test_E113_each_kind_has_its_status_and_first_words(name, status, prefix):
    """As the table has them."""
    error = getattr(errors, name)("what was met")
    assert (error.status, str(error), error.detail) == (status, f"{prefix}: what was met", "what was met")


def test_E057_a_missing_reference_is_not_found():
    """One that cannot be reached is unavailable."""
    assert errors.reference_failed("x", is_missing=True).status is Status.NOT_FOUND


def test_E116_an_error_without_detail_is_its_title():
    """No colon dangles."""
    assert str(EvergreenError(Status.UNKNOWN, "Evergreen: Action Failed", "")) == "Evergreen: Action Failed"


@pytest.mark.parametrize(
    ("error", "prefix"),
    [
        (house.DecodeError("d"), "Evergreen: Bad Input: here: d"),
        (house.UnsupportedMediaType("d"), "Evergreen: Bad Input: here: d"),
        (house.NotAcceptable("d"), "Evergreen: Not Acceptable: here: d"),
        (house.LimitExceeded("d"), "Evergreen: Limit Exceeded: here: d"),
        (house.ShuttingDown("d"), "Evergreen: Shutting Down: here: d"),
        (house.ProtocolViolation("d"), "Evergreen: Invalid Action: here: d"),
        (house.FunctionError("d"), "Evergreen: Action Failed: here: d"),
        (house.CallError("d"), "Evergreen: Action Failed: here: d"),
        (house.EncodeError("d"), "Evergreen: Action Failed: here: d"),
        (house.FunctionError(), "Evergreen: Action Failed: here"),
        (ReferenceRefused("d"), "Evergreen: Reference Refused: here: d"),
        (ReferenceFailed("d"), "Evergreen: Reference Failed: here: d"),
    ],
)
def test_E113_errors_of_the_machinery_are_told_in_these_words(error, prefix):
    """With the action; the codes are those of the table."""
    made = translated(error, "here")
    assert str(made) == prefix
    kinds = {title: status for _, status, title in TABLE} | {"Evergreen: Not Acceptable": Status.INVALID_ARGUMENT}
    assert made.status is kinds[made.title]


@pytest.mark.parametrize(
    "error",
    [
        errors.bad_input("x"),
        house.StatusError(Status.ABORTED, "mine"),
        house.Cancelled("x"),
        house.DeadlineExceeded("x"),
        house.InternalError("secret"),
    ],
)
def test_E113_others_stay_as_they_are(error):
    """Errors of this protocol, those that a function chose, and ends of the call."""
    assert translated(error, "here") is error


def test_the_table_is_whole():
    """Every function of the module that makes an error is tested here."""
    makers = {name for name in errors.__all__ if name not in ("EvergreenError", "translated")}
    assert makers == {name for name, _, _ in TABLE}
