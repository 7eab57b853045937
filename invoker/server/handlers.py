"""`Handlers`: finds the handler of a path of the HTTP transport."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from invoker.attach.service import Service

if TYPE_CHECKING:
    from invoker.transports.http.app import Handler

log = logging.getLogger(__name__)


class Handlers:
    """Asks the services for the handler of a path.

    Args:
        services: All services that are served; a later one is asked before an earlier one.
    """

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services

    def __call__(self, path: str) -> Handler | None:
        """The handler of this path, behind the handlers that services put in front of it; None: there is none."""
        handler = self._owner(path)
        if handler is not None:
            for one in self._services:
                handler = one.http_over(path, handler)
        return handler

    def tell_hidden(self, names: Iterable[str]) -> None:
        """Log a warning for each function whose path belongs to a page or a protocol (H-017)."""
        for name in names:
            if self.hides(name):
                log.warning(
                    "the function %s is not served at /%s, which is a path of the process; over HTTP it is called at / "
                    "with the header Invoker-Function: %s",
                    *(name, name, name),
                )

    def hides(self, name: str) -> bool:
        """Whether the path of a function belongs to another service."""
        return self._owner(f"/{name}") is not self._owner("/")

    def _owner(self, path: str) -> Handler | None:
        for one in reversed(self._services):
            if one.on_http and (handler := one.http_handler(path)) is not None:
                return handler
        return None
