"""Tests of what a loop passes over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from invoker.connect.quiet import quieten

POLLER = "Exception in callback PollerCompletionQueue._handle_events"


@pytest.mark.parametrize(
    ("context", "is_told"),
    [
        ({"message": POLLER, "exception": BlockingIOError()}, False),
        ({"message": POLLER, "exception": OSError()}, True),
        ({"message": "Exception in callback mine", "exception": BlockingIOError()}, True),
        ({"message": "Task was destroyed but it is pending!"}, True),
    ],
)  # fmt: skip
def test_only_an_idle_wake_up_is_passed_over(
    context: dict[str, Any], is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything else is told as ever."""
    told: list[dict[str, Any]] = []
    loop = asyncio.new_event_loop()
    try:
        monkeypatch.setattr(loop, "default_exception_handler", told.append)
        quieten(loop)
        loop.call_exception_handler(context)
    finally:
        loop.close()
    assert bool(told) == is_told
