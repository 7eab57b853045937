"""`invoker.server.fronts`: who answers a path, and whose functions have none of their own."""

from __future__ import annotations

import logging

import pytest

from invoker.attach.service import Service
from invoker.server.fronts import Fronts


class Any(Service):
    on_http = True

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def http_front(self, path: str) -> Any | None:  # type: ignore[override]  # it stands for a front
        return self if not self.paths or path in self.paths else None


class Elsewhere(Any):
    on_http = False


def test_a_later_service_is_asked_first() -> None:
    """And one that is not on this door is never asked."""
    every, pages = Any(), Any("/livez")
    fronts = Fronts([every, pages, Elsewhere()])
    assert fronts("/livez") is pages
    assert fronts("/square") is every
    assert Fronts([pages])("/square") is None


def test_H017_functions_whose_path_is_taken_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """With the way to call them; the others are not mentioned."""
    fronts = Fronts([Any(), Any("/livez")])
    assert [fronts.hides(name) for name in ("square", "livez")] == [False, True]
    with caplog.at_level(logging.WARNING):
        fronts.tell_hidden(["square", "livez"])
    (record,) = caplog.records
    assert "Invoker-Function: livez" in record.getMessage()
