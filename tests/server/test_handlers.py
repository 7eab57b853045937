"""`invoker.server.handlers`: who answers a path, and whose functions have none of their own."""

from __future__ import annotations

import logging

import pytest

from invoker.attach.service import Service
from invoker.server.handlers import Handlers


class Any(Service):
    on_http = True

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def http_handler(self, path: str) -> Any | None:  # type: ignore[override]  # it stands for a handler
        return self if not self.paths or path in self.paths else None


class Elsewhere(Any):
    on_http = False


def test_a_later_service_is_asked_first() -> None:
    """And one that is not on this transport is never asked."""
    every, pages = Any(), Any("/livez")
    handlers = Handlers([every, pages, Elsewhere()])
    assert handlers("/livez") is pages
    assert handlers("/square") is every
    assert Handlers([pages])("/square") is None


def test_H017_functions_whose_path_is_taken_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """With the way to call them; the others are not mentioned."""
    handlers = Handlers([Any(), Any("/livez")])
    assert [handlers.hides(name) for name in ("square", "livez")] == [False, True]
    with caplog.at_level(logging.WARNING):
        handlers.tell_hidden(["square", "livez"])
    (record,) = caplog.records
    assert "Invoker-Function: livez" in record.getMessage()
