"""What the tests of the command line share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quiet_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that a test runs in its own process leaves the process's logging as it was."""
    monkeypatch.setattr("invoker.telemetry.logs.set_up", lambda level, style: None)
