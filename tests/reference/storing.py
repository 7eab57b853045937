"""A session of one call as one that stores what it is sent, so that a `SessionReactor` runs it."""

from __future__ import annotations

from typing import Any


class Storing:
    """It stores nothing."""

    headers: tuple[tuple[str, str], ...] = ()
    stalled: frozenset[tuple[str, int]] = frozenset()
    hears_waits = is_full = False
    held = 0

    def __init__(self, session: Any) -> None:
        self.receive, self.half_close, self.deliver = session.receive, session.half_close, session.deliver

    def release(self) -> None:
        """Nothing is held."""
