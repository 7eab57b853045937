"""What all tests of commands share."""

from __future__ import annotations

from tests.cli.conftest import quiet_commands

__all__ = ["quiet_commands"]
